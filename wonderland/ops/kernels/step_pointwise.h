// What acts on each token alone: norms and hidden layers.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "products.h"

namespace {

template <class T> void layer_norm(const T *x, const T *gain, const T *shift, double eps, T *y, long d) {
  T mean = 0, square = 0;
  for (long c = 0; c < d; c++) mean += x[c];
  mean /= T(d);
  for (long c = 0; c < d; c++) square += (x[c] - mean) * (x[c] - mean);
  T scale = T(1) / std::sqrt(square / T(d) + T(eps));
  for (long c = 0; c < d; c++) y[c] = (x[c] - mean) * scale * gain[c] + (shift ? shift[c] : T(0));
}

template <class T> void rms_norm(const T *x, const T *gain, double eps, T *y, long d) {
  T scale = T(1) / std::sqrt(dot(x, x, d) / T(d) + T(eps));
  for (long c = 0; c < d; c++) y[c] = x[c] * scale * gain[c];
}

enum Activation { IDENTITY, RELU, SQUARED_RELU, SIGMOID, SILU, TANH, GELU, GELU_TANH };

// e^x in lanes keeps the cheap ones cheap; the error function has no such form.
template <class T> void activate(T *x, long n, long kind) {
  constexpr int W = Lanes<T>::count;
  for (long c = 0; c < n; c += W) {
    int m = (int)std::min<long>(W, n - c);
    V<T> v = get(x + c, m), zero{};
    if (kind == RELU || kind == SQUARED_RELU) v = v > zero ? v : zero;
    if (kind == SQUARED_RELU) v = v * v;
    if (kind == SIGMOID) v = vsigmoid<T>(v);
    if (kind == SILU) v = v * vsigmoid<T>(v);
    if (kind == TANH) v = vtanh<T>(v);
    if (kind == GELU_TANH) v = v * vsigmoid<T>(T(1.5957691216057308) * (v + T(0.044715) * v * v * v));
    if (kind == GELU)
      for (int k = 0; k < m; k++) v[k] = v[k] * T(0.5) * (T(1) + std::erf(v[k] * T(0.70710678118654752)));
    put(x + c, v, m);
  }
}

// A hidden layer, or a gated one: the gate's rows come first.
template <class T>
void hidden(const T *x, const T *inward, const T *inward_bias, const T *outward, const T *outward_bias, T *y, long rows,
            long dim, long width, long kind, long gated, int threads) {
  std::vector<T> h((gated + 1) * width);
  for (long row = 0; row < rows; row++) {
    product(inward, x + row * dim, inward_bias, h.data(), (gated + 1) * width, dim, threads);
    activate(h.data(), width, kind);
    if (gated)
      for (long c = 0; c < width; c++) h[c] *= h[width + c];
    product(outward, h.data(), outward_bias, y + row * dim, dim, width, threads);
  }
}

} // namespace
