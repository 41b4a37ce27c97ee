// Residual MLP block with pre-norm, y = x + W2 f(W1 norm(x) + b1) + b2, for the rows of one thread; a few rows at a time, so
// that the hidden layer stays in a core's cache.
#pragma once
#include "activations.h"
#include "fused_block.h"

// a = f(u + bias); u keeps its bias where it is kept.
template <class T, int KIND> static void forward_rows(T *u, const T *bias, T *a, long rows, long width) {
  constexpr int W = Lanes<T>::count;
  for (long row = 0; row < rows; row++, u += width, a += width)
    for (long c = 0; c < width; c += W) {
      int m = (int)std::min<long>(W, width - c);
      V<T> v = get(u + c, m), derivative;
      if (bias) put(u + c, v += get(bias + c, m), m);
      put(a + c, activate<T, KIND>(v, derivative), m);
    }
}

// a = f(u) and grads *= f'(u), in one pass; `sums` gets the sums of columns.
template <class T, int KIND> static void backward_rows(const T *u, T *grads, T *a, T *sums, long rows, long width) {
  constexpr int W = Lanes<T>::count;
  for (long row = 0; row < rows; row++, u += width, a += width, grads += width)
    for (long c = 0; c < width; c += W) {
      int m = (int)std::min<long>(W, width - c);
      V<T> derivative, value = activate<T, KIND>(get(u + c, m), derivative);
      derivative *= get(grads + c, m);
      put(a + c, value, m), put(grads + c, derivative, m);
      put(sums + c, get(sums + c, m) + derivative, m);
    }
}

// Kept for the backward pass: W1 norm(x) + b1, and the mean and scale of each row.
template <class T> static void mlp_forward(const FusedBlock<T> &block, const Stream<T> &s, long first, long last) {
  long dim = s.dim, width = block.width;
  T *normed = scratch<T>(block.at_once * (dim + 2 * width + 2)), *a = normed + block.at_once * dim;
  T *spare = a + block.at_once * width;
  for (long at = first; at < last; at += block.at_once) {
    long rows = std::min(block.at_once, last - at);
    const T *x = block.x + at * dim;
    T *u = block.projected ? block.projected + at * width : spare, *y = block.y + at * dim;
    T *moments = block.projected ? block.moments + 2 * at : spare + block.at_once * width;
    norm_forward(block, x, normed, y, moments, rows, dim);
    matmul(s.gemm, normed, false, block.inward, true, T(0), u, rows, width, dim);
    with_kind(block.activation, [&](auto kind) { forward_rows<T, decltype(kind)::value>(u, block.inward_bias, a, rows, width); });
    matmul(s.gemm, a, false, block.outward, true, T(1), y, rows, dim, width);
  }
}

template <class T>
static void mlp_backward(const FusedBlock<T> &block, const Stream<T> &s, const T *dy, T *dx, T *grads, long first, long last) {
  long dim = s.dim, width = block.width;
  T *normed = scratch<T>(block.at_once * (2 * dim + 2 * width)), *dnormed = normed + block.at_once * dim;
  T *a = dnormed + block.at_once * dim, *da = a + block.at_once * width;
  WeightGrads<T> own(grads, dim, width, width);
  for (long at = first; at < last; at += block.at_once) {
    long rows = std::min(block.at_once, last - at);
    const T *x = block.x + at * dim, *dy_here = dy + at * dim, *moments = block.moments + 2 * at;
    T more = at > first;
    matmul(s.gemm, dy_here, false, block.outward, false, T(0), da, rows, width, dim);
    with_kind(block.activation, [&](auto kind) {
      backward_rows<T, decltype(kind)::value>(block.projected + at * width, da, a, own.inward_bias, rows, width);
    });
    matmul(s.gemm, dy_here, true, a, false, more, own.outward, dim, width, rows);
    for (long row = 0; row < rows; row++) {
      scaled(x + row * dim, block.gain, block.shift, moments[2 * row], moments[2 * row + 1], normed + row * dim, dim);
      add_to(own.outward_bias, dy_here + row * dim, dim);
    }
    matmul(s.gemm, da, true, normed, false, more, own.inward, width, dim, rows);
    matmul(s.gemm, da, false, block.inward, false, T(0), dnormed, rows, dim, width);
    norm_backward(block, x, moments, dnormed, dy_here, dx + at * dim, own, rows, dim);
  }
}
