// Norms and MLPs, for one token.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "activations.h"
#include "norms.h"
#include "small_products.h"

namespace {

template <class T> void layer_norm(const T *x, const T *gain, const T *shift, double eps, T *y, long d) {
  T mean, scale;
  measure<T, true>(x, eps, mean, scale, d);
  scaled(x, gain, shift, mean, scale, y, d);
}

template <class T> void rms_norm(const T *x, const T *gain, double eps, T *y, long d) {
  T mean, scale;
  measure<T, false>(x, eps, mean, scale, d);
  scaled(x, gain, (const T *)nullptr, mean, scale, y, d);
}

template <class T> void activated(T *x, long n, long kind) {
  constexpr int W = Lanes<T>::count;
  with_kind(kind, [&](auto constant) {
    for (long c = 0; c < n; c += W) {
      int m = (int)std::min<long>(W, n - c);
      V<T> derivative;
      put(x + c, activate<T, decltype(constant)::value>(get(x + c, m), derivative), m);
    }
  });
}

// An MLP, or a gated linear unit, whose gate has the first rows of `inward`.
template <class T>
void mlp(const T *x, const T *inward, const T *inward_bias, const T *outward, const T *outward_bias, T *y, long rows,
            long dim, long width, long kind, long gated, int threads) {
  long wide = (gated + 1) * width;
  std::vector<T> h(rows * wide);
  product(inward, x, dim, inward_bias, h.data(), rows, wide, dim, threads);
  for (long row = 0; row < rows; row++) {
    T *own = &h[row * wide];
    activated(own, width, kind);
    if (gated)
      for (long c = 0; c < width; c++) own[c] *= own[width + c];
  }
  product(outward, h.data(), wide, outward_bias, y, rows, dim, width, threads);
}

} // namespace
