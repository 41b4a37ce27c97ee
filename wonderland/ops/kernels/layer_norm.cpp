// Each row to mean 0 and variance 1, times a gain, plus a shift, in one pass; the backward pass in another. x is (rows, d).
#include <algorithm>

#include "lanes.h"

namespace {

template <class T, class F> INLINE T reduce(long d, F term) {
  constexpr int W = Lanes<T>::count;
  V<T> total{};
  for (long c = 0; c < d; c += W) {
    int m = (int)std::min<long>(W, d - c);
    total += first<T>(term(c, m), m, T(0));
  }
  return sum<T>(total);
}

// `facts` gets the mean of each row and one over its deviation.
template <class T>
void forward(const T *x, const T *gain, const T *shift, double eps, T *y, T *facts, long rows, long d, int threads) {
  constexpr int W = Lanes<T>::count;
#pragma omp parallel for num_threads(threads) schedule(static) if (rows * d > 16384)
  for (long row = 0; row < rows; row++) {
    const T *xi = x + row * d;
    T mean = reduce<T>(d, [&](long c, int m) { return get(xi + c, m); }) / T(d);
    T square = reduce<T>(d, [&](long c, int m) {
      V<T> off = get(xi + c, m) - mean;
      return off * off;
    });
    T scale = T(1) / std::sqrt(square / T(d) + T(eps));
    facts[2 * row] = mean, facts[2 * row + 1] = scale;
    for (long c = 0; c < d; c += W) {
      int m = (int)std::min<long>(W, d - c);
      V<T> v = (get(xi + c, m) - mean) * scale * get(gain + c, m);
      put(y + row * d + c, shift ? v + get(shift + c, m) : v, m);
    }
  }
}

// dgain and dshift are (parts, d): each part sums its own rows, and the caller the parts.
template <class T>
void backward(const T *x, const T *gain, const T *facts, const T *dy, T *dx, T *dgain, T *dshift, long rows, long d,
              long parts, int threads) {
  constexpr int W = Lanes<T>::count;
#pragma omp parallel for num_threads(threads) schedule(static) if (rows * d > 16384)
  for (long part = 0; part < parts; part++) {
    T *gains = dgain + part * d, *shifts = dshift + part * d;
    std::fill(gains, gains + d, T(0));
    std::fill(shifts, shifts + d, T(0));
    for (long row = part * rows / parts; row < (part + 1) * rows / parts; row++) {
      const T *xi = x + row * d, *gi = dy + row * d;
      T mean = facts[2 * row], scale = facts[2 * row + 1];
      V<T> pulled{}, along{};
      for (long c = 0; c < d; c += W) {
        int m = (int)std::min<long>(W, d - c);
        V<T> g = get(gi + c, m), v = (get(xi + c, m) - mean) * scale, slope = g * get(gain + c, m);
        pulled += slope, along += first<T>(slope * v, m, T(0));
        put(gains + c, get(gains + c, m) + g * v, m), put(shifts + c, get(shifts + c, m) + g, m);
      }
      T level = sum<T>(pulled) / T(d), tilt = sum<T>(along) / T(d);
      for (long c = 0; c < d; c += W) {
        int m = (int)std::min<long>(W, d - c);
        V<T> v = (get(xi + c, m) - mean) * scale;
        put(dx + row * d + c, scale * (get(gi + c, m) * get(gain + c, m) - level - v * tilt), m);
      }
    }
  }
}

} // namespace

#define ENTRIES(T, name)                                                                                               \
  extern "C" void forward_##name(const T *x, const T *gain, const T *shift, double eps, T *y, T *facts, long rows,     \
                                 long d, long threads) {                                                               \
    forward<T>(x, gain, shift, eps, y, facts, rows, d, (int)threads);                                                  \
  }                                                                                                                    \
  extern "C" void backward_##name(const T *x, const T *gain, const T *facts, const T *dy, T *dx, T *dgain, T *dshift,  \
                                  long rows, long d, long parts, long threads) {                                       \
    backward<T>(x, gain, facts, dy, dx, dgain, dshift, rows, d, parts, (int)threads);                                  \
  }

ENTRIES(float, f32)
ENTRIES(double, f64)
