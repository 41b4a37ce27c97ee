// LayerNorm and RMSNorm (CENTRED false) of a row: forward, and backward from the mean and scale that forward kept.
#pragma once
#include <algorithm>
#include <cmath>

#include "lanes.h"

template <class T, class F> static INLINE T reduce(long d, F term) {
  constexpr int W = Lanes<T>::count;
  V<T> total{};
  for (long c = 0; c < d; c += W) {
    int m = (int)std::min<long>(W, d - c);
    total += first<T>(term(c, m), m, T(0));
  }
  return sum<T>(total);
}

// The mean (0 where CENTRED is false) and one over the deviation.
template <class T, bool CENTRED> static INLINE void measure(const T *x, double eps, T &mean, T &scale, long d) {
  mean = CENTRED ? reduce<T>(d, [&](long c, int m) { return get(x + c, m); }) / T(d) : T(0);
  T square = reduce<T>(d, [&](long c, int m) {
    V<T> off = get(x + c, m) - mean;
    return off * off;
  });
  scale = T(1) / std::sqrt(square / T(d) + T(eps));
}

template <class T> static INLINE void scaled(const T *x, const T *gain, const T *shift, T mean, T scale, T *y, long d) {
  constexpr int W = Lanes<T>::count;
  for (long c = 0; c < d; c += W) {
    int m = (int)std::min<long>(W, d - c);
    V<T> v = (get(x + c, m) - mean) * scale * get(gain + c, m);
    put(y + c, shift ? v + get(shift + c, m) : v, m);
  }
}

// Backward: dx is the gradient of x, plus `residual` where there is one; gradients of gain and shift are added to `gains` and
// `shifts`.
template <class T, bool CENTRED>
static INLINE void norm_grad(const T *x, const T *gain, T mean, T scale, const T *dy, const T *residual, T *dx, T *gains, T *shifts,
                            long d) {
  constexpr int W = Lanes<T>::count;
  V<T> grad_sum{}, grad_dot{};
  for (long c = 0; c < d; c += W) {
    int m = (int)std::min<long>(W, d - c);
    V<T> g = get(dy + c, m), v = (get(x + c, m) - mean) * scale, grad = g * get(gain + c, m);
    if (CENTRED) grad_sum += grad;
    grad_dot += first<T>(grad * v, m, T(0));
    put(gains + c, get(gains + c, m) + g * v, m);
    if (shifts) put(shifts + c, get(shifts + c, m) + g, m);
  }
  T level = CENTRED ? sum<T>(grad_sum) / T(d) : T(0), tilt = sum<T>(grad_dot) / T(d);
  for (long c = 0; c < d; c += W) {
    int m = (int)std::min<long>(W, d - c);
    V<T> v = (get(x + c, m) - mean) * scale;
    V<T> grad = scale * (get(dy + c, m) * get(gain + c, m) - level - v * tilt);
    put(dx + c, residual ? grad + get(residual + c, m) : grad, m);
  }
}
