// Each row to mean 0 and variance 1, times a gain, plus a shift, in one pass; the backward pass in another. x is (rows, d).
#include "norms.h"

namespace {

// `facts` gets the mean of each row and one over its deviation.
template <class T>
void forward(const T *x, const T *gain, const T *shift, double eps, T *y, T *facts, long rows, long d, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static) if (rows * d > 16384)
  for (long row = 0; row < rows; row++) {
    T *fact = facts + 2 * row;
    measure<T, true>(x + row * d, eps, fact[0], fact[1], d);
    scaled(x + row * d, gain, shift, fact[0], fact[1], y + row * d, d);
  }
}

// dgain and dshift are (parts, d): each part sums its own rows, and the caller the parts.
template <class T>
void backward(const T *x, const T *gain, const T *facts, const T *dy, T *dx, T *dgain, T *dshift, long rows, long d,
              long parts, int threads) {
#pragma omp parallel for num_threads(threads) schedule(static) if (rows * d > 16384)
  for (long part = 0; part < parts; part++) {
    T *gains = dgain + part * d, *shifts = dshift + part * d;
    std::fill(gains, gains + d, T(0));
    std::fill(shifts, shifts + d, T(0));
    for (long row = part * rows / parts; row < (part + 1) * rows / parts; row++)
      unscaled<T, true>(x + row * d, gain, facts[2 * row], facts[2 * row + 1], dy + row * d, (const T *)nullptr, dx + row * d,
                        gains, shifts, d);
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
