// A hidden layer as a branch: y = x + W2 f(W1 norm(x) + b1) + b2, for some of the rows; without a gain there is neither norm
// nor sum, y = W2 f(W1 x + b1) + b2. Some rows at a time, so that the hidden layer stays in a core's cache.
#pragma once
#include "activations.h"
#include "branch.h"

// a = f(u + bias); u keeps its bias where it is kept.
template <class T, int KIND> static void forward_rows(T *u, const T *bias, T *a, long rows, long width) {
  constexpr int W = Lanes<T>::count;
  for (long row = 0; row < rows; row++, u += width, a += width)
    for (long c = 0; c < width; c += W) {
      int m = (int)std::min<long>(W, width - c);
      V<T> v = get(u + c, m), slope;
      if (bias) put(u + c, v += get(bias + c, m), m);
      put(a + c, activate<T, KIND>(v, slope), m);
    }
}

// a = f(u) and slopes times f'(u), in one pass; `sums` gets the columns.
template <class T, int KIND> static void backward_rows(const T *u, T *slopes, T *a, T *sums, long rows, long width) {
  constexpr int W = Lanes<T>::count;
  for (long row = 0; row < rows; row++, u += width, a += width, slopes += width)
    for (long c = 0; c < width; c += W) {
      int m = (int)std::min<long>(W, width - c);
      V<T> slope, value = activate<T, KIND>(get(u + c, m), slope);
      slope *= get(slopes + c, m);
      put(a + c, value, m), put(slopes + c, slope, m);
      put(sums + c, get(sums + c, m) + slope, m);
    }
}

// Kept for the backward pass: W1 norm(x) + b1, and the mean and scale of each row.
template <class T> static void hidden(const Branch<T> &l, const Stream<T> &s, long first, long last) {
  long dim = s.dim, width = l.width;
  T *normed = scratch<T>(l.some * (dim + 2 * width + 2)), *a = normed + l.some * dim, *spare = a + l.some * width;
  for (long at = first; at < last; at += l.some) {
    long rows = std::min(l.some, last - at);
    const T *x = l.x + at * dim;
    T *u = l.kept ? l.kept + at * width : spare, *facts = l.kept ? l.facts + 2 * at : spare + l.some * width, *y = l.y + at * dim;
    enter(l, x, normed, y, facts, rows, dim);
    matmul(s.gemm, l.gain ? normed : x, false, l.inward, true, T(0), u, rows, width, dim);
    with_kind(l.activation, [&](auto one) { forward_rows<T, decltype(one)::value>(u, l.inward_bias, a, rows, width); });
    matmul(s.gemm, a, false, l.outward, true, T(1), y, rows, dim, width);
  }
}

// The way back; `dy` and `dx` may be the same.
template <class T>
static void unhidden(const Branch<T> &l, const Stream<T> &s, const T *dy, T *dx, T *slopes, long first, long last) {
  long dim = s.dim, width = l.width;
  T *normed = scratch<T>(l.some * (2 * dim + 2 * width)), *pulled = normed + l.some * dim;
  T *a = pulled + l.some * dim, *da = a + l.some * width;
  Slopes<T> own(slopes, dim, width, width);
  for (long at = first; at < last; at += l.some) {
    long rows = std::min(l.some, last - at);
    const T *x = l.x + at * dim, *slope = dy + at * dim, *facts = l.facts + 2 * at;
    T more = at > first;
    matmul(s.gemm, slope, false, l.outward, false, T(0), da, rows, width, dim);
    with_kind(l.activation, [&](auto one) {
      backward_rows<T, decltype(one)::value>(l.kept + at * width, da, a, own.inward_bias, rows, width);
    });
    matmul(s.gemm, slope, true, a, false, more, own.outward, dim, width, rows);
    for (long row = 0; row < rows; row++) {
      if (l.gain) scaled(x + row * dim, l.gain, l.shift, facts[2 * row], facts[2 * row + 1], normed + row * dim, dim);
      add_to(own.outward_bias, slope + row * dim, dim);
    }
    matmul(s.gemm, da, true, l.gain ? normed : x, false, more, own.inward, width, dim, rows);
    matmul(s.gemm, da, false, l.inward, false, T(0), l.gain ? pulled : dx + at * dim, rows, dim, width);
    if (l.gain) leave(l, x, facts, pulled, slope, dx + at * dim, own, rows, dim);
  }
}
