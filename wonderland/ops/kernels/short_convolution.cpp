// A short causal convolution of each channel with an optional SiLU after it, in one pass over (b, t, d).
// weight is (w, d), the oldest input first; tail (b, w - 1, d) holds the inputs before the first.
#include <algorithm>
#include <vector>

#include "lanes.h"

namespace {

template <class T> struct Input {
  const T *x, *tail;
  long xl, t, d, w, row, c;
  int m;
  INLINE V<T> operator()(long i) const {
    if (i >= 0) return get(x + (row * t + i) * xl + c, m);
    return tail ? get(tail + (row * (w - 1) + i + w - 1) * d + c, m) : V<T>{};
  }
};

// Tasks are rows and stretches of time, in which every vector of channels makes all its steps: memory is used while near.
constexpr long STRETCH = 32;

template <class T>
void forward(const T *x, long xl, const T *weight, const T *bias, const T *tail, T *y, long b, long t, long d, long w,
             long silu, int threads) {
  constexpr int W = Lanes<T>::count;
  long stretches = (t + STRETCH - 1) / STRETCH;
#pragma omp parallel for collapse(2) num_threads(threads) schedule(static)
  for (long row = 0; row < b; row++)
    for (long stretch = 0; stretch < stretches; stretch++) {
      long i0 = stretch * STRETCH, i1 = std::min(t, i0 + STRETCH);
      for (long c = 0; c < d; c += W) {
        int m = (int)std::min<long>(W, d - c);
        Input<T> in{x, tail, xl, t, d, w, row, c, m};
        V<T> k[w], at0 = bias ? get(bias + c, m) : V<T>{};
        for (long j = 0; j < w; j++) k[j] = get(weight + j * d + c, m);
        for (long i = i0; i < i1; i++) {
          V<T> acc = at0;
          for (long j = 0; j < w; j++) acc += k[j] * in(i - w + 1 + j);
          if (silu) acc *= vsigmoid<T>(acc);
          put(y + (row * t + i) * d + c, acc, m);
        }
      }
    }
}

// Each stretch also needs the slopes of the w - 1 outputs after it. dweight is (b, stretches, w, d), dbias
// (b, stretches, d): the caller sums over the first two axes.
template <class T>
void backward(const T *x, long xl, const T *weight, const T *bias, const T *tail, const T *dy, T *dx, T *dweight, T *dbias,
              T *dtail, long b, long t, long d, long w, long silu, int threads) {
  constexpr int W = Lanes<T>::count;
  long stretches = (t + STRETCH - 1) / STRETCH;
#pragma omp parallel for collapse(2) num_threads(threads) schedule(static)
  for (long row = 0; row < b; row++)
    for (long stretch = 0; stretch < stretches; stretch++) {
      long i0 = stretch ? stretch * STRETCH : 1 - w, i1 = std::min(t, (stretch + 1) * STRETCH);
      for (long c = 0; c < d; c += W) {
        int m = (int)std::min<long>(W, d - c);
        Input<T> in{x, tail, xl, t, d, w, row, c, m};
        V<T> k[w], dk[w], later[w], at0 = bias ? get(bias + c, m) : V<T>{}, db{};
        for (long j = 0; j < w; j++) k[j] = get(weight + j * d + c, m), dk[j] = later[j] = V<T>{};
        for (long i = std::min(t, i1 + w - 1) - 1; i >= i0; i--) {
          V<T> g{};
          for (long j = w - 1; j > 0; j--) later[j] = later[j - 1];
          if (i >= 0) {
            g = get(dy + (row * t + i) * d + c, m);
            if (silu) {
              V<T> acc = at0;
              for (long j = 0; j < w; j++) acc += k[j] * in(i - w + 1 + j);
              V<T> s = vsigmoid<T>(acc);
              g *= s * (T(1) + acc * (T(1) - s));
            }
          }
          later[0] = g;
          if (i >= i1) continue;
          if (i >= 0) {
            for (long j = 0; j < w; j++) dk[j] += g * in(i - w + 1 + j);
            db += g;
          }
          V<T> dxi{};
          for (long j = 0; j < w; j++) dxi += k[w - 1 - j] * later[j];
          if (i >= 0)
            put(dx + (row * t + i) * d + c, dxi, m);
          else if (dtail)
            put(dtail + (row * (w - 1) + i + w - 1) * d + c, dxi, m);
        }
        for (long j = 0; j < w; j++) put(dweight + ((row * stretches + stretch) * w + j) * d + c, dk[j], m);
        put(dbias + (row * stretches + stretch) * d + c, db, m);
      }
    }
}

} // namespace

#define ENTRIES(T, name)                                                                                               \
  extern "C" void forward_##name(const T *x, long xl, const T *weight, const T *bias, const T *tail, T *y, long b,     \
                                 long t, long d, long w, long silu, long threads) {                                    \
    forward<T>(x, xl, weight, bias, tail, y, b, t, d, w, silu, (int)threads);                                          \
  }                                                                                                                    \
  extern "C" void backward_##name(const T *x, long xl, const T *weight, const T *bias, const T *tail, const T *dy,     \
                                  T *dx, T *dweight, T *dbias, T *dtail, long b, long t, long d, long w, long silu,    \
                                  long threads) {                                                                      \
    backward<T>(x, xl, weight, bias, tail, dy, dx, dweight, dbias, dtail, b, t, d, w, silu, (int)threads);             \
  }

ENTRIES(float, f32)
ENTRIES(double, f64)
