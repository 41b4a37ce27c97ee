// Linear scans: h_t = a_t h_{t-1} + x_t, for real and complex elements, forward and backward.
// Rows are (b, t, d); beyond a row's length the state stays what it was.
#include <algorithm>
#include <complex>

#include "lanes.h"

namespace {

constexpr long BLOCK = 256; // channels one task walks through time with: a row of states stays in the first cache

template <class T> struct Real {
  using type = T;
};
template <class T> struct Real<std::complex<T>> {
  using type = T;
};

// Written out: the library's complex product guards against overflow and does not vectorise.
template <class E> INLINE E times(E a, E b) { return a * b; }
template <class T> INLINE std::complex<T> times(std::complex<T> a, std::complex<T> b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}
template <class E> INLINE E conjugate(E a) { return a; }
template <class T> INLINE std::complex<T> conjugate(std::complex<T> a) { return {a.real(), -a.imag()}; }

// a has its own strides for batch and time (0 where it is shared).
template <class E>
void forward(const E *a, long ab, long at, const E *x, const E *first, const int64_t *lengths, E *out, long b, long t,
             long d, int threads) {
  long blocks = (d + BLOCK - 1) / BLOCK;
#pragma omp parallel for collapse(2) num_threads(threads) schedule(static)
  for (long row = 0; row < b; row++)
    for (long block = 0; block < blocks; block++) {
      long from = block * BLOCK, to = std::min(d, from + BLOCK);
      long real = lengths ? lengths[row] : t;
      const E *previous = first ? first + row * d : nullptr;
      for (long i = 0; i < t; i++) {
        const E *ai = a + row * ab + i * at, *xi = x + (row * t + i) * d;
        E *oi = out + (row * t + i) * d;
        if (i >= real)
          for (long j = from; j < to; j++) oi[j] = previous ? previous[j] : E(0);
        else if (!previous)
          for (long j = from; j < to; j++) oi[j] = xi[j];
        else
          for (long j = from; j < to; j++) oi[j] = times(ai[j], previous[j]) + xi[j];
        previous = oi;
      }
    }
}

// da has the full shape (b, t, d), or (b, d) summed over time where a is shared in time.
template <class E>
void backward(const E *a, long ab, long at, const E *first, const int64_t *lengths, const E *out, const E *grad, E *dx,
              E *da, E *dfirst, long b, long t, long d, int threads) {
  long blocks = (d + BLOCK - 1) / BLOCK;
#pragma omp parallel for collapse(2) num_threads(threads) schedule(static)
  for (long row = 0; row < b; row++)
    for (long block = 0; block < blocks; block++) {
      long from = block * BLOCK, to = std::min(d, from + BLOCK);
      long real = lengths ? lengths[row] : t;
      E carry[BLOCK], shared[BLOCK];
      for (long j = 0; j < BLOCK; j++) carry[j] = shared[j] = E(0);
      for (long i = t - 1; i >= 0; i--) {
        const E *ai = a + row * ab + i * at, *gi = grad + (row * t + i) * d;
        E *dxi = dx + (row * t + i) * d, *dai = da + (row * t + i) * d;
        const E *previous = i ? out + (row * t + i - 1) * d : first ? first + row * d : nullptr;
        if (i >= real) {
          for (long j = from; j < to; j++) {
            carry[j - from] += gi[j];
            dxi[j] = E(0);
          }
          if (at)
            for (long j = from; j < to; j++) dai[j] = E(0);
          continue;
        }
        for (long j = from; j < to; j++) {
          E g = carry[j - from] + gi[j];
          dxi[j] = g;
          carry[j - from] = times(conjugate(ai[j]), g);
        }
        if (at)
          for (long j = from; j < to; j++) dai[j] = previous ? times(dxi[j], conjugate(previous[j])) : E(0);
        else if (previous)
          for (long j = from; j < to; j++) shared[j - from] += times(dxi[j], conjugate(previous[j]));
      }
      if (!at)
        for (long j = from; j < to; j++) da[row * d + j] = shared[j - from];
      if (dfirst)
        for (long j = from; j < to; j++) dfirst[row * d + j] = carry[j - from];
    }
}

} // namespace

#define ENTRIES(E, name)                                                                                               \
  extern "C" void forward_##name(const E *a, long ab, long at, const E *x, const E *first, const int64_t *lengths,     \
                                 E *out, long b, long t, long d, long threads) {                                       \
    forward<E>(a, ab, at, x, first, lengths, out, b, t, d, (int)threads);                                              \
  }                                                                                                                    \
  extern "C" void backward_##name(const E *a, long ab, long at, const E *first, const int64_t *lengths, const E *out,  \
                                  const E *grad, E *dx, E *da, E *dfirst, long b, long t, long d, long threads) {      \
    backward<E>(a, ab, at, first, lengths, out, grad, dx, da, dfirst, b, t, d, (int)threads);                          \
  }

ENTRIES(float, f32)
ENTRIES(double, f64)
ENTRIES(std::complex<float>, c64)
ENTRIES(std::complex<double>, c128)
