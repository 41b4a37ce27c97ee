// Each row to mean square 1, times a gain, in one pass; the backward pass in another. x is (rows, d).
#include "norms.h"

namespace {

template <class T>
void forward(const T *x, const T *gain, double eps, T *y, T *scales, long rows, long d, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static) if (rows * d > 16384)
  for (long row = 0; row < rows; row++) {
    T mean, scale;
    measure<T, false>(x + row * d, eps, mean, scale, d);
    if (scales) scales[row] = scale;
    scaled(x + row * d, gain, (const T *)nullptr, mean, scale, y + row * d, d);
  }
}

// dgain is (parts, d): each part sums its own rows, and the caller the parts.
template <class T>
void backward(const T *x, const T *gain, const T *scales, const T *dy, T *dx, T *dgain, long rows, long d, long parts,
              int threads) {
#pragma omp parallel for num_threads(threads) schedule(static) if (rows * d > 16384)
  for (long part = 0; part < parts; part++) {
    T *sums = dgain + part * d;
    std::fill(sums, sums + d, T(0));
    for (long row = part * rows / parts; row < (part + 1) * rows / parts; row++)
      unscaled<T, false>(x + row * d, gain, T(0), scales[row], dy + row * d, (const T *)nullptr, dx + row * d, sums,
                         (T *)nullptr, d);
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
