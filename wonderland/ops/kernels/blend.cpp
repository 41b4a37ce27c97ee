// Each token mixed with the one before it, by up to three vectors of shares, in one pass over (b, t, d): z = p + s (x - p).
// `last` (b, d) stands before the first token, or 0.
#include <algorithm>

#include "lanes.h"

namespace {

constexpr long STRETCH = 64; // tokens of a task
constexpr int MOST = 3;

template <class T> INLINE V<T> token(const T *x, const T *last, long row, long i, long t, long d, long c, int m) {
  if (i >= 0) return get(x + (row * t + i) * d + c, m);
  return last ? get(last + row * d + c, m) : V<T>{};
}

template <class T>
void forward(const T *x, const T *last, const T *const *shares, T *const *z, long b, long t, long d, int threads) {
  constexpr int W = Lanes<T>::count;
  long stretches = (t + STRETCH - 1) / STRETCH;
  int count = shares[2] ? 3 : 2;
#pragma omp parallel for collapse(2) num_threads(threads) schedule(static) if (b * t * d > 16384)
  for (long row = 0; row < b; row++)
    for (long stretch = 0; stretch < stretches; stretch++)
      for (long i = stretch * STRETCH; i < std::min(t, (stretch + 1) * STRETCH); i++)
        for (long c = 0; c < d; c += W) {
          int m = (int)std::min<long>(W, d - c);
          V<T> before = token(x, last, row, i - 1, t, d, c, m), change = token(x, last, row, i, t, d, c, m) - before;
          for (int k = 0; k < count; k++) put(z[k] + (row * t + i) * d + c, before + get(shares[k] + c, m) * change, m);
        }
}

// dshares is (b, stretches, 3, d): the caller sums over the first two axes.
template <class T>
void backward(const T *x, const T *last, const T *const *shares, const T *const *dz, T *dx, T *dlast, T *dshares, long b,
              long t, long d, int threads) {
  constexpr int W = Lanes<T>::count;
  long stretches = (t + STRETCH - 1) / STRETCH;
  int count = shares[2] ? 3 : 2;
#pragma omp parallel for collapse(2) num_threads(threads) schedule(static) if (b * t * d > 16384)
  for (long row = 0; row < b; row++)
    for (long stretch = 0; stretch < stretches; stretch++) {
      long from = stretch * STRETCH, to = std::min(t, from + STRETCH);
      for (long c = 0; c < d; c += W) {
        int m = (int)std::min<long>(W, d - c);
        V<T> share[MOST], total[MOST] = {}, grad[MOST], before = token(x, last, row, from - 1, t, d, c, m);
        for (int k = 0; k < count; k++) share[k] = get(shares[k] + c, m), grad[k] = get(dz[k] + (row * t + from) * d + c, m);
        if (from == 0 && dlast) {
          V<T> back{};
          for (int k = 0; k < count; k++) back += grad[k] - share[k] * grad[k];
          put(dlast + row * d + c, back, m);
        }
        for (long i = from; i < to; i++) {
          V<T> here = token(x, last, row, i, t, d, c, m), dx_here{};
          for (int k = 0; k < count; k++) {
            total[k] += grad[k] * (here - before), dx_here += share[k] * grad[k];
            grad[k] = i + 1 < t ? get(dz[k] + (row * t + i + 1) * d + c, m) : V<T>{};
            dx_here += grad[k] - share[k] * grad[k];
          }
          put(dx + (row * t + i) * d + c, dx_here, m);
          before = here;
        }
        for (int k = 0; k < count; k++) put(dshares + ((row * stretches + stretch) * MOST + k) * d + c, total[k], m);
      }
    }
}

} // namespace

#define ENTRIES(T, name)                                                                                               \
  extern "C" void forward_##name(const T *x, const T *last, const T *one, const T *two, const T *three, T *a, T *e,    \
                                 T *o, long b, long t, long d, long threads) {                                         \
    const T *shares[MOST] = {one, two, three};                                                                         \
    T *z[MOST] = {a, e, o};                                                                                            \
    forward<T>(x, last, shares, z, b, t, d, (int)threads);                                                             \
  }                                                                                                                    \
  extern "C" void backward_##name(const T *x, const T *last, const T *one, const T *two, const T *three, const T *da,  \
                                  const T *de, const T *dof, T *dx, T *dlast, T *dshares, long b, long t, long d,      \
                                  long threads) {                                                                      \
    const T *shares[MOST] = {one, two, three}, *dz[MOST] = {da, de, dof};                                              \
    backward<T>(x, last, shares, dz, dx, dlast, dshares, b, t, d, (int)threads);                                       \
  }

ENTRIES(float, f32)
ENTRIES(double, f64)
