// Each row to mean square 1, times a gain, in one pass; the backward pass in another. x is (rows, d).
#include <algorithm>
#include <vector>

#include "lanes.h"

namespace {

template <class T, class F> INLINE T reduce(long d, F term) {
  constexpr int W = Lanes<T>::count;
  V<T> total{};
  for (long c = 0; c < d; c += W) total += term(c, (int)std::min<long>(W, d - c));
  return sum<T>(total);
}

template <class T>
void forward(const T *x, const T *gain, double eps, T *y, T *scales, long rows, long d, int threads) {
  constexpr int W = Lanes<T>::count;
#pragma omp parallel for num_threads(threads) schedule(static) if (rows * d > 16384)
  for (long row = 0; row < rows; row++) {
    const T *xi = x + row * d;
    T square = reduce<T>(d, [&](long c, int m) {
      V<T> v = get(xi + c, m);
      return v * v;
    });
    T scale = T(1) / std::sqrt(square / T(d) + T(eps));
    if (scales) scales[row] = scale;
    for (long c = 0; c < d; c += W) {
      int m = (int)std::min<long>(W, d - c);
      put(y + row * d + c, get(xi + c, m) * scale * get(gain + c, m), m);
    }
  }
}

// dgain is (parts, d): each part sums its own rows, and the caller the parts.
template <class T>
void backward(const T *x, const T *gain, const T *scales, const T *dy, T *dx, T *dgain, long rows, long d, long parts,
              int threads) {
  constexpr int W = Lanes<T>::count;
#pragma omp parallel for num_threads(threads) schedule(static) if (rows * d > 16384)
  for (long part = 0; part < parts; part++) {
    T *sums = dgain + part * d;
    std::fill(sums, sums + d, T(0));
    for (long row = part * rows / parts; row < (part + 1) * rows / parts; row++) {
      const T *xi = x + row * d, *gi = dy + row * d;
      T scale = scales[row];
      T along = reduce<T>(d, [&](long c, int m) { return get(gi + c, m) * get(gain + c, m) * get(xi + c, m); });
      T pull = along * scale * scale * scale / T(d);
      for (long c = 0; c < d; c += W) {
        int m = (int)std::min<long>(W, d - c);
        V<T> v = get(xi + c, m), g = get(gi + c, m);
        put(dx + row * d + c, g * get(gain + c, m) * scale - v * pull, m);
        put(sums + c, get(sums + c, m) + g * v * scale, m);
      }
    }
  }
}

} // namespace

#define ENTRIES(T, name)                                                                                               \
  extern "C" void forward_##name(const T *x, const T *gain, double eps, T *y, T *scales, long rows, long d,            \
                                 long threads) {                                                                       \
    forward<T>(x, gain, eps, y, scales, rows, d, (int)threads);                                               \
  }                                                                                                                    \
  extern "C" void backward_##name(const T *x, const T *gain, const T *scales, const T *dy, T *dx, T *dgain, long rows, \
                                  long d, long parts, long threads) {                                                  \
    backward<T>(x, gain, scales, dy, dx, dgain, rows, d, parts, (int)threads);                                         \
  }

ENTRIES(float, f32)
ENTRIES(double, f64)
