// What acts on each token alone: norms and hidden layers.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "products.h"

namespace {

template <class T> void layer_norm(const T *x, const T *gain, const T *shift, double eps, T *y, long d) {
  constexpr int W = Lanes<T>::count;
  V<T> total{}, square{};
  T mean = 0, rest = 0;
  long whole = d - d % W;
  for (long c = 0; c < whole; c += W) total += load(x + c);
  for (long c = whole; c < d; c++) mean += x[c];
  mean = (mean + sum<T>(total)) / T(d);
  for (long c = 0; c < whole; c += W) {
    V<T> off = load(x + c) - mean;
    square += off * off;
  }
  for (long c = whole; c < d; c++) rest += (x[c] - mean) * (x[c] - mean);
  T scale = T(1) / std::sqrt((rest + sum<T>(square)) / T(d) + T(eps));
  for (long c = 0; c < d; c++) y[c] = (x[c] - mean) * scale * gain[c] + (shift ? shift[c] : T(0));
}

template <class T> void rms_norm(const T *x, const T *gain, double eps, T *y, long d) {
  T scale = T(1) / std::sqrt(dot(x, x, d) / T(d) + T(eps));
  for (long c = 0; c < d; c++) y[c] = x[c] * scale * gain[c];
}

enum Activation { IDENTITY, RELU, SQUARED_RELU, SIGMOID, SILU, TANH, GELU, GELU_TANH };

template <class T> void activate(T *x, long n, long kind) {
  constexpr int W = Lanes<T>::count;
  for (long c = 0; c < n; c += W) {
    int m = (int)std::min<long>(W, n - c);
    V<T> v = get(x + c, m), zero{};
    if (kind == RELU || kind == SQUARED_RELU) v = v < zero ? zero : v; // what is no number stays so
    if (kind == SQUARED_RELU) v = v * v;
    if (kind == SIGMOID) v = vsigmoid<T>(v);
    if (kind == SILU) v = v * vsigmoid<T>(v);
    if (kind == TANH) v = vtanh<T>(v);
    if (kind == GELU_TANH) v = v * vsigmoid<T>(T(1.5957691216057308) * (v + T(0.044715) * v * v * v));
    if (kind == GELU) v = v * vnormal(v, zero);
    put(x + c, v, m);
  }
}

// A hidden layer, or a gated one: the gate's rows come first.
template <class T>
void hidden(const T *x, const T *inward, const T *inward_bias, const T *outward, const T *outward_bias, T *y, long rows,
            long dim, long width, long kind, long gated, int threads) {
  long wide = (gated + 1) * width;
  std::vector<T> h(rows * wide);
  product(inward, x, dim, inward_bias, h.data(), rows, wide, dim, threads);
  for (long row = 0; row < rows; row++) {
    T *own = &h[row * wide];
    activate(own, width, kind);
    if (gated)
      for (long c = 0; c < width; c++) own[c] *= own[width + c];
  }
  product(outward, h.data(), wide, outward_bias, y, rows, dim, width, threads);
}

} // namespace
