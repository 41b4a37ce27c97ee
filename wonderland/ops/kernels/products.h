// Matrix times vector for single steps of generation: weights (out, in) as they lie in memory.
#pragma once
#include "lanes.h"

template <class T> static INLINE T dot(const T *a, const T *b, long n) {
  constexpr int W = Lanes<T>::count;
  V<T> s0{}, s1{};
  long j = 0;
  for (; j + 2 * W <= n; j += 2 * W) s0 += load(a + j) * load(b + j), s1 += load(a + j + W) * load(b + j + W);
  for (; j + W <= n; j += W) s0 += load(a + j) * load(b + j);
  T total = sum<T>(s0 + s1);
  for (; j < n; j++) total += a[j] * b[j];
  return total;
}

// Four rows at a time, so that each piece of x is loaded once and four sums are under way.
template <class T>
static void product(const T *weight, const T *x, const T *bias, T *y, long out, long in, int threads) {
  constexpr int W = Lanes<T>::count;
  constexpr long WORTH = 1 << 19; // products below which a second thread costs more than it brings
#pragma omp parallel for num_threads(threads) schedule(static) if (threads > 1 && out * in > WORTH)
  for (long i = 0; i < out; i += 4) {
    if (i + 4 > out) {
      for (long k = i; k < out; k++) y[k] = dot(weight + k * in, x, in) + (bias ? bias[k] : T(0));
      continue;
    }
    const T *w0 = weight + i * in, *w1 = w0 + in, *w2 = w1 + in, *w3 = w2 + in;
    V<T> s0{}, s1{}, s2{}, s3{};
    long j = 0;
    for (; j + W <= in; j += W) {
      V<T> v = load(x + j);
      s0 += load(w0 + j) * v, s1 += load(w1 + j) * v, s2 += load(w2 + j) * v, s3 += load(w3 + j) * v;
    }
    T r[4] = {sum<T>(s0), sum<T>(s1), sum<T>(s2), sum<T>(s3)};
    for (; j < in; j++) r[0] += w0[j] * x[j], r[1] += w1[j] * x[j], r[2] += w2[j] * x[j], r[3] += w3[j] * x[j];
    for (int k = 0; k < 4; k++) y[i + k] = r[k] + (bias ? bias[i + k] : T(0));
  }
}
