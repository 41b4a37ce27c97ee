// Matrix products for single steps of generation: y (rows, out) = x (rows, in) times weights (out, in) as they lie in memory.
#pragma once
#include <algorithm>

#include "lanes.h"

template <class T> static INLINE T dot(const T *a, const T *b, long n) {
  constexpr int W = Lanes<T>::count;
  V<T> s0{}, s1{};
  long j = 0;
  for (; j + 2 * W <= n; j += 2 * W) s0 += load(a + j) * load(b + j), s1 += load(a + j + W) * load(b + j + W);
  for (; j + W <= n; j += W) s0 += load(a + j) * load(b + j);
  if (j < n) s1 += load_part(a + j, (int)(n - j)) * load_part(b + j, (int)(n - j));
  return sum<T>(s0 + s1);
}

// So many outputs of so many rows, one vector of products each; their sums come out side by side.
// `line` is the distance from one row of weights to the next where they do not follow each other.
template <class T, int OUT, int ROWS, bool SPACED = false>
static INLINE void tile(const T *w, const T *x, long apart, const T *bias, T *y, long wide, long in, long line = 0) {
  constexpr int W = Lanes<T>::count;
  if (!SPACED) line = in;
  V<T> total[W] = {}, piece[ROWS];
  long j = 0;
  for (; j + W <= in; j += W) {
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++) piece[r] = load(x + r * apart + j);
#pragma GCC unroll 16
    for (int o = 0; o < OUT; o++) {
      V<T> v = load(w + o * line + j);
#pragma GCC unroll 16
      for (int r = 0; r < ROWS; r++) total[r * OUT + o] += v * piece[r];
    }
  }
  if (int m = (int)(in - j)) {
#pragma GCC unroll 16
    for (int r = 0; r < ROWS; r++) piece[r] = load_part(x + r * apart + j, m);
#pragma GCC unroll 16
    for (int o = 0; o < OUT; o++) {
      V<T> v = load_part(w + o * line + j, m);
#pragma GCC unroll 16
      for (int r = 0; r < ROWS; r++) total[r * OUT + o] += v * piece[r];
    }
  }
  V<T> all = sums<T>(total);
  T lanes[W];
  memcpy(lanes, &all, sizeof all);
  if (bias)
    for (int r = 0; r < ROWS; r++)
      for (int o = 0; o < OUT; o++) lanes[r * OUT + o] += bias[o];
  for (int r = 0; r < ROWS; r++) memcpy(y + r * wide, lanes + r * OUT, OUT * sizeof(T));
}

// `apart` is the distance from one row of x to the next. Weights are read once, whatever the number of rows.
template <class T>
static void product(const T *weight, const T *x, long apart, const T *bias, T *y, long rows, long out, long in, int threads) {
  constexpr int W = Lanes<T>::count;
  constexpr long WORTH = 1 << 14; // products below which a second thread costs more than it brings
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1 && rows * out * in > WORTH)
  for (long i = 0; i < out; i += W) {
    const T *w = weight + i * in, *b = bias ? bias + i : nullptr;
    if (i + W > out) {
      for (long r = 0; r < rows; r++)
        for (long k = i; k < out; k++) y[r * out + k] = dot(weight + k * in, x + r * apart, in) + (bias ? bias[k] : T(0));
      continue;
    }
    long r = 0;
    for (; r + 4 <= rows; r += 4)
      for (int o = 0; o < W; o += W / 4)
        tile<T, W / 4, 4>(w + o * in, x + r * apart, apart, b ? b + o : b, y + r * out + i + o, out, in);
    for (; r + 2 <= rows; r += 2)
      for (int o = 0; o < W; o += W / 2)
        tile<T, W / 2, 2>(w + o * in, x + r * apart, apart, b ? b + o : b, y + r * out + i + o, out, in);
    if (r < rows) tile<T, W, 1>(w, x + r * apart, apart, b, y + r * out + i, out, in);
  }
}
