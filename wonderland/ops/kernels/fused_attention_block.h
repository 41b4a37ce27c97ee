// Residual attention block with pre-norm, y = x + W_o attention(W_p norm(x) + b_p) + b_o, for the sequences of one thread.
#pragma once
#include "fused_block.h"
#include "attention_heads.h"

// Rotate all queries and keys of a token by its row of a table (cosines, then sines); `sign` is -1 to rotate gradients back.
template <class T> static void rotate_heads(T *vectors, const T *angle, T sign, const FusedBlock<T> &block) {
  long pairs = block.rotated / 2, step = block.half ? 1 : 2, apart = block.half ? pairs : 1;
  const T *cosine = angle, *sine = angle + pairs;
  for (long h = 0; h < block.heads + block.kv; h++, vectors += block.d)
    for (long i = 0; i < pairs; i++) {
      T &first = vectors[i * step], &second = vectors[i * step + apart], a = first, b = second;
      first = a * cosine[i] - sign * b * sine[i], second = b * cosine[i] + sign * a * sine[i];
    }
}

// Kept for the backward pass: rotated projections, outputs of the heads, their softmax sums, mean and scale of each row.
template <class T> static void attention_forward(const FusedBlock<T> &block, const Stream<T> &s, long first, long last) {
  Heads heads{s.t, block.heads, block.kv, block.d, (bool)block.causal};
  long t = s.t, dim = s.dim, wide = block.width, step = heads.step(), most = block.at_once * t;
  long aside = block.projected ? 0 : most * (wide + step + 2 + 2 * block.heads);
  T *normed = scratch<T>(most * dim + heads.template forward_room<T>() + aside);
  T *room = normed + most * dim, *spare = room + heads.template forward_room<T>();
  for (long at = first; at < last; at += block.at_once) {
    long count = std::min(block.at_once, last - at), rows = count * t;
    T *fused = block.projected ? block.projected + at * t * wide : spare, *mixed = block.projected ? block.mixed + at * t * step : spare + most * wide;
    T *moments = block.projected ? block.moments + 2 * at * t : spare + most * (wide + step), *y = block.y + at * t * dim;
    T *sums = block.projected ? block.sums + 2 * at * block.heads * t : spare + most * (wide + step + 2);
    norm_forward(block, block.x + at * t * dim, normed, y, moments, rows, dim);
    matmul(s.gemm, normed, false, block.inward, true, T(0), fused, rows, wide, dim);
    for (long row = 0; row < rows; row++) {
      if (block.inward_bias) add_to(fused + row * wide, block.inward_bias, wide);
      if (block.table) rotate_heads(fused + row * wide, block.table + row % t * block.rotated, T(1), block);
    }
    for (long i = 0; i < count; i++)
      for (long h = 0; h < block.heads; h++)
        attend(fused + i * t * wide, mixed + i * t * step, sums + 2 * i * block.heads * t, h, T(block.scale), heads, room);
    matmul(s.gemm, mixed, false, block.outward, true, T(1), y, rows, dim, step);
  }
}

template <class T>
static void attention_backward(const FusedBlock<T> &block, const Stream<T> &s, const T *dy, T *dx, T *grads, long first, long last) {
  Heads heads{s.t, block.heads, block.kv, block.d, (bool)block.causal};
  long t = s.t, dim = s.dim, wide = block.width, step = heads.step(), most = block.at_once * t;
  T *normed = scratch<T>(most * (2 * dim + wide + step) + heads.template backward_room<T>());
  T *dnormed = normed + most * dim, *dfused = dnormed + most * dim, *dmixed = dfused + most * wide, *room = dmixed + most * step;
  WeightGrads<T> own(grads, dim, wide, step);
  for (long at = first; at < last; at += block.at_once) {
    long count = std::min(block.at_once, last - at), rows = count * t;
    const T *x = block.x + at * t * dim, *dy_here = dy + at * t * dim, *mixed = block.mixed + at * t * step, *moments = block.moments + 2 * at * t;
    T more = at > first;
    matmul(s.gemm, dy_here, false, block.outward, false, T(0), dmixed, rows, step, dim);
    matmul(s.gemm, dy_here, true, mixed, false, more, own.outward, dim, step, rows);
    for (long i = 0; i < count; i++)
      for (long g = 0; g < block.kv; g++)
        attend_backward(block.projected + (at + i) * t * wide, mixed + i * t * step, block.sums + 2 * (at + i) * block.heads * t, dmixed + i * t * step,
                 dfused + i * t * wide, g, T(block.scale), heads, room);
    for (long row = 0; row < rows; row++) {
      if (block.table) rotate_heads(dfused + row * wide, block.table + row % t * block.rotated, T(-1), block);
      add_to(own.inward_bias, dfused + row * wide, wide);
      add_to(own.outward_bias, dy_here + row * dim, dim);
      scaled(x + row * dim, block.gain, block.shift, moments[2 * row], moments[2 * row + 1], normed + row * dim, dim);
    }
    matmul(s.gemm, dfused, true, normed, false, more, own.inward, wide, dim, rows);
    matmul(s.gemm, dfused, false, block.inward, false, T(0), dnormed, rows, dim, wide);
    norm_backward(block, x, moments, dnormed, dy_here, dx + at * t * dim, own, rows, dim);
  }
}
