// Attention as a branch: y = x + W_o attention(W_p norm(x) + b_p) + b_o, for some of the sequences.
#pragma once
#include "branch.h"
#include "heads.h"

// Turn all queries and keys of a token by its row of a table (cosines, then sines); `way` is -1 to turn slopes back.
template <class T> static void turn(T *vectors, const T *angle, T way, const Branch<T> &l) {
  long pairs = l.turned / 2, step = l.half ? 1 : 2, apart = l.half ? pairs : 1;
  const T *cosine = angle, *sine = angle + pairs;
  for (long h = 0; h < l.heads + l.kv; h++, vectors += l.d)
    for (long i = 0; i < pairs; i++) {
      T &one = vectors[i * step], &two = vectors[i * step + apart], a = one, b = two;
      one = a * cosine[i] - way * b * sine[i], two = b * cosine[i] + way * a * sine[i];
    }
}

// Kept for the backward pass: the projections (turned), what the heads say, their sums, mean and scale.
template <class T> static void attending(const Branch<T> &l, const Stream<T> &s, long first, long last) {
  Heads heads{s.t, l.heads, l.kv, l.d, (bool)l.causal};
  long t = s.t, dim = s.dim, wide = l.width, step = heads.step(), most = l.some * t;
  long aside = l.kept ? 0 : most * (wide + step + 2 + 2 * l.heads);
  T *normed = scratch<T>(most * dim + heads.template forward_room<T>() + aside);
  T *room = normed + most * dim, *spare = room + heads.template forward_room<T>();
  for (long at = first; at < last; at += l.some) {
    long count = std::min(l.some, last - at), rows = count * t;
    T *fused = l.kept ? l.kept + at * t * wide : spare, *said = l.kept ? l.said + at * t * step : spare + most * wide;
    T *facts = l.kept ? l.facts + 2 * at * t : spare + most * (wide + step), *y = l.y + at * t * dim;
    T *sums = l.kept ? l.sums + 2 * at * l.heads * t : spare + most * (wide + step + 2);
    enter(l, l.x + at * t * dim, normed, y, facts, rows, dim);
    matmul(s.gemm, normed, false, l.inward, true, T(0), fused, rows, wide, dim);
    for (long row = 0; row < rows; row++) {
      if (l.inward_bias) add_to(fused + row * wide, l.inward_bias, wide);
      if (l.table) turn(fused + row * wide, l.table + row % t * l.turned, T(1), l);
    }
    for (long i = 0; i < count; i++)
      for (long h = 0; h < l.heads; h++)
        attend(fused + i * t * wide, said + i * t * step, sums + 2 * i * l.heads * t, h, T(l.scale), heads, room);
    matmul(s.gemm, said, false, l.outward, true, T(1), y, rows, dim, step);
  }
}

// The way back; `dy` and `dx` may be the same.
template <class T>
static void unattending(const Branch<T> &l, const Stream<T> &s, const T *dy, T *dx, T *slopes, long first, long last) {
  Heads heads{s.t, l.heads, l.kv, l.d, (bool)l.causal};
  long t = s.t, dim = s.dim, wide = l.width, step = heads.step(), most = l.some * t;
  T *normed = scratch<T>(most * (2 * dim + wide + step) + heads.template backward_room<T>());
  T *pulled = normed + most * dim, *dfused = pulled + most * dim, *dsaid = dfused + most * wide, *room = dsaid + most * step;
  Slopes<T> own(slopes, dim, wide, step);
  for (long at = first; at < last; at += l.some) {
    long count = std::min(l.some, last - at), rows = count * t;
    const T *x = l.x + at * t * dim, *slope = dy + at * t * dim, *said = l.said + at * t * step, *facts = l.facts + 2 * at * t;
    T more = at > first;
    matmul(s.gemm, slope, false, l.outward, false, T(0), dsaid, rows, step, dim);
    matmul(s.gemm, slope, true, said, false, more, own.outward, dim, step, rows);
    for (long i = 0; i < count; i++)
      for (long g = 0; g < l.kv; g++)
        unattend(l.kept + (at + i) * t * wide, said + i * t * step, l.sums + 2 * (at + i) * l.heads * t, dsaid + i * t * step,
                 dfused + i * t * wide, g, T(l.scale), heads, room);
    for (long row = 0; row < rows; row++) {
      if (l.table) turn(dfused + row * wide, l.table + row % t * l.turned, T(-1), l);
      add_to(own.inward_bias, dfused + row * wide, wide);
      add_to(own.outward_bias, slope + row * dim, dim);
      scaled(x + row * dim, l.gain, l.shift, facts[2 * row], facts[2 * row + 1], normed + row * dim, dim);
    }
    matmul(s.gemm, dfused, true, normed, false, more, own.inward, wide, dim, rows);
    matmul(s.gemm, dfused, false, l.inward, false, T(0), pulled, rows, dim, wide);
    leave(l, x, facts, pulled, slope, dx + at * t * dim, own, rows, dim);
  }
}
