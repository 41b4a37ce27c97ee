// Activation functions and their derivatives, by number.
#pragma once
#include <type_traits>

#include "lanes.h"

enum Activation { IDENTITY, RELU, SQUARED_RELU, SIGMOID, SILU, TANH, GELU, GELU_TANH };

// The function, and its derivative.
template <class T, int KIND> static INLINE V<T> activate(V<T> v, V<T> &derivative) {
  V<T> zero{}, one = zero + T(1);
  // Comparisons are written so that NaN stays NaN.
  if constexpr (KIND == RELU) return derivative = v > zero ? one : zero, v < zero ? zero : v;
  if constexpr (KIND == SQUARED_RELU) {
    V<T> up = v < zero ? zero : v;
    return derivative = up + up, up * up;
  }
  if constexpr (KIND == SIGMOID) {
    V<T> s = vsigmoid<T>(v);
    return derivative = s * (one - s), s;
  }
  if constexpr (KIND == SILU) {
    V<T> s = vsigmoid<T>(v);
    return derivative = s + v * s * (one - s), v * s;
  }
  if constexpr (KIND == TANH) {
    V<T> t = vtanh<T>(v);
    return derivative = one - t * t, t;
  }
  if constexpr (KIND == GELU) {
    V<T> density, share = vnormal(v, density);
    return derivative = share + v * density, v * share;
  }
  if constexpr (KIND == GELU_TANH) {
    const T c = T(1.5957691216057307), k = T(0.044715);
    V<T> s = vsigmoid<T>(c * v * (T(1) + k * v * v));
    return derivative = s + v * s * (one - s) * c * (T(1) + T(3) * k * v * v), v * s;
  }
  return derivative = one, v;
}

// Calls `run` with the kind as a compile-time constant.
template <class F> static INLINE void with_kind(long kind, F run) {
  using std::integral_constant;
  switch (kind) {
  case RELU: return run(integral_constant<int, RELU>{});
  case SQUARED_RELU: return run(integral_constant<int, SQUARED_RELU>{});
  case SIGMOID: return run(integral_constant<int, SIGMOID>{});
  case SILU: return run(integral_constant<int, SILU>{});
  case TANH: return run(integral_constant<int, TANH>{});
  case GELU: return run(integral_constant<int, GELU>{});
  case GELU_TANH: return run(integral_constant<int, GELU_TANH>{});
  default: return run(integral_constant<int, IDENTITY>{});
  }
}
