// GELU by its formula with a tanh, and its slope, in one pass each.
#include <algorithm>

#include "lanes.h"

namespace {

// The function's factor of x, and how fast the function grows.
template <class T> INLINE V<T> factor(V<T> x, V<T> &slope) {
  const T c = T(1.5957691216057307), k = T(0.044715);
  V<T> s = vsigmoid<T>(c * x * (T(1) + k * x * x));
  slope = s + x * s * (T(1) - s) * c * (T(1) + T(3) * k * x * x);
  return s;
}

constexpr long STRETCH = 4096;

template <class T> void run(const T *x, const T *dy, T *out, long n, int threads) {
  constexpr int W = Lanes<T>::count;
#pragma omp parallel for num_threads(threads) schedule(static) if (n > 4 * STRETCH)
  for (long begin = 0; begin < n; begin += STRETCH)
    for (long i = begin, end = std::min(n, begin + STRETCH); i < end; i += W) {
      int m = (int)std::min<long>(W, end - i);
      V<T> v = get(x + i, m), slope, share = factor<T>(v, slope);
      put(out + i, dy ? get(dy + i, m) * slope : v * share, m);
    }
}

} // namespace

#define ENTRIES(T, name)                                                                                               \
  extern "C" void run_##name(const T *x, const T *dy, T *out, long n, long threads) {                                  \
    run<T>(x, dy, out, n, (int)threads);                                                                               \
  }

ENTRIES(float, f32)
ENTRIES(double, f64)
