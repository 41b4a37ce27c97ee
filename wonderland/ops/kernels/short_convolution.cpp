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

// What a channel needs of each tap: TAPS of them in registers, or any number in memory.
constexpr int MOST = 64;
template <class T, int TAPS> struct Taps {
  V<T> at[TAPS ? TAPS : MOST];
  INLINE V<T> &operator[](long j) { return at[j]; }
};

template <int TAPS, class F> static INLINE void each_tap(long w, F body) {
  if (TAPS) {
#pragma GCC unroll 8
    for (long j = 0; j < TAPS; j++) body(j);
  } else
    for (long j = 0; j < w; j++) body(j);
}

template <class T, int TAPS>
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
        Taps<T, TAPS> k, seen; // the inputs under the taps, moved on by one each step
        V<T> at0 = bias ? get(bias + c, m) : V<T>{};
        each_tap<TAPS>(w, [&](long j) {
          k[j] = get(weight + j * d + c, m);
          seen[j] = j ? in(i0 - w + j) : V<T>{};
        });
        for (long i = i0; i < i1; i++) {
          V<T> acc = at0, now = in(i);
          each_tap<TAPS>(w, [&](long j) {
            seen[j] = j + 1 < w ? seen[j + 1] : now;
            acc += k[j] * seen[j];
          });
          if (silu) acc *= vsigmoid<T>(acc);
          put(y + (row * t + i) * d + c, acc, m);
        }
      }
    }
}

// Each stretch also needs the gradients of the w - 1 outputs after it. dweight is (b, stretches, w, d), dbias
// (b, stretches, d): the caller sums over the first two axes.
template <class T, int TAPS>
void backward(const T *x, long xl, const T *weight, const T *bias, const T *tail, const T *dy, T *dx, T *dweight, T *dbias,
              T *dtail, long b, long t, long d, long w, long silu, int threads) {
  constexpr int W = Lanes<T>::count;
  long stretches = (t + STRETCH - 1) / STRETCH;
#pragma omp parallel for collapse(2) num_threads(threads) schedule(static)
  for (long row = 0; row < b; row++)
    for (long stretch = 0; stretch < stretches; stretch++) {
      long i0 = stretch ? stretch * STRETCH : 1 - w, i1 = std::min(t, (stretch + 1) * STRETCH);
      long top = std::min(t, i1 + w - 1);
      for (long c = 0; c < d; c += W) {
        int m = (int)std::min<long>(W, d - c);
        Input<T> in{x, tail, xl, t, d, w, row, c, m};
        Taps<T, TAPS> k, dk, later, seen;
        V<T> at0 = bias ? get(bias + c, m) : V<T>{}, db{};
        each_tap<TAPS>(w, [&](long j) {
          k[j] = get(weight + j * d + c, m), dk[j] = later[j] = V<T>{};
          seen[j] = j + 1 < w ? in(top - w + 1 + j) : V<T>{};
        });
        for (long i = top - 1; i >= i0; i--) {
          V<T> g{};
          if (i >= 0) {
            V<T> acc = at0, next = in(i - w + 1);
            each_tap<TAPS>(w, [&](long j) {
              V<T> held = seen[j];
              seen[j] = next, next = held;
              acc += k[j] * seen[j];
            });
            g = get(dy + (row * t + i) * d + c, m);
            if (silu) {
              V<T> s = vsigmoid<T>(acc);
              g *= s * (T(1) + acc * (T(1) - s));
            }
          }
          bool own = i < i1;
          V<T> dxi{}, next = g;
          each_tap<TAPS>(w, [&](long j) {
            V<T> held = later[j];
            later[j] = next, next = held;
            dxi += k[w - 1 - j] * later[j];
            if (own && i >= 0) dk[j] += g * seen[j];
          });
          if (!own) continue;
          if (i >= 0) {
            db += g;
            put(dx + (row * t + i) * d + c, dxi, m);
          } else if (dtail)
            put(dtail + (row * (w - 1) + i + w - 1) * d + c, dxi, m);
        }
        each_tap<TAPS>(w, [&](long j) { put(dweight + ((row * stretches + stretch) * w + j) * d + c, dk[j], m); });
        put(dbias + (row * stretches + stretch) * d + c, db, m);
      }
    }
}

} // namespace

#define ENTRIES(T, name)                                                                                               \
  extern "C" void forward_##name(const T *x, long xl, const T *weight, const T *bias, const T *tail, T *y, long b,     \
                                 long t, long d, long w, long silu, long threads) {                                    \
    (w == 4 ? forward<T, 4> : forward<T, 0>)(x, xl, weight, bias, tail, y, b, t, d, w, silu, (int)threads);            \
  }                                                                                                                    \
  extern "C" void backward_##name(const T *x, long xl, const T *weight, const T *bias, const T *tail, const T *dy,     \
                                  T *dx, T *dweight, T *dbias, T *dtail, long b, long t, long d, long w, long silu,    \
                                  long threads) {                                                                      \
    (w == 4 ? backward<T, 4> : backward<T, 0>)(x, xl, weight, bias, tail, dy, dx, dweight, dbias, dtail, b, t, d, w,   \
                                               silu, (int)threads);                                                    \
  }

ENTRIES(float, f32)
ENTRIES(double, f64)
