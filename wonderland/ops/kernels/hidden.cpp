// A branch of a residual block in one pass: y = x + W2 f(W1 norm(x) + b1) + b2; without a gain there is neither norm nor sum,
// y = W2 f(W1 x + b1) + b2. Each thread takes its rows through all of it, some at a time, so that the hidden layer stays in
// its cache.
#include "activations.h"
#include "gemm.h"
#include "norms.h"

namespace {

template <class T> struct Sizes {
  Gemm<T> gemm;
  long rows, d, width, some;
  double eps;
};

// a = f(u + bias); u keeps its bias where it is kept.
template <class T, int KIND> void forward_rows(T *u, const T *bias, T *a, long rows, long width) {
  constexpr int W = Lanes<T>::count;
  for (long row = 0; row < rows; row++, u += width, a += width)
    for (long c = 0; c < width; c += W) {
      int m = (int)std::min<long>(W, width - c);
      V<T> v = get(u + c, m), slope;
      if (bias) put(u + c, v += get(bias + c, m), m);
      put(a + c, activate<T, KIND>(v, slope), m);
    }
}

// a = f(u) and slopes times f'(u), in one pass; `sums` gets the columns.
template <class T, int KIND> void backward_rows(const T *u, T *slopes, T *a, T *sums, long rows, long width) {
  constexpr int W = Lanes<T>::count;
  for (long row = 0; row < rows; row++, u += width, a += width, slopes += width)
    for (long c = 0; c < width; c += W) {
      int m = (int)std::min<long>(W, width - c);
      V<T> slope, value = activate<T, KIND>(get(u + c, m), slope);
      slope *= get(slopes + c, m);
      put(a + c, value, m), put(slopes + c, slope, m);
      if (sums) put(sums + c, get(sums + c, m) + slope, m);
    }
}

// `kept` gets W1 norm(x) + b1 where a backward pass may come, `facts` the mean and scale of each row.
template <class T, bool CENTRED>
void forward(const T *x, const T *gain, const T *shift, const T *inward, const T *inward_bias, const T *outward,
             const T *outward_bias, T *y, T *kept, T *facts, Sizes<T> s, long kind, int threads) {
#pragma omp parallel num_threads(threads)
  {
    Share share(s.rows);
    T *normed = scratch<T>(s.some * (s.d + 2 * s.width)), *a = normed + s.some * s.d, *spare = a + s.some * s.width;
    for (long at = share.begin; at < share.end; at += s.some) {
      long rows = std::min(s.some, share.end - at);
      for (long row = 0; row < rows; row++) {
        const T *from = x + (at + row) * s.d;
        T *fact = facts + 2 * (at + row), *to = y + (at + row) * s.d;
        if (gain) {
          measure<T, CENTRED>(from, s.eps, fact[0], fact[1], s.d);
          scaled(from, gain, shift, fact[0], fact[1], normed + row * s.d, s.d);
        }
        for (long c = 0; c < s.d; c++) to[c] = (gain ? from[c] : T(0)) + (outward_bias ? outward_bias[c] : T(0));
      }
      T *u = kept ? kept + at * s.width : spare;
      matmul(s.gemm, gain ? normed : x + at * s.d, false, inward, true, T(0), u, rows, s.width, s.d);
      with_kind(kind, [&](auto one) { forward_rows<T, decltype(one)::value>(u, inward_bias, a, rows, s.width); });
      matmul(s.gemm, a, false, outward, true, T(1), y + at * s.d, rows, s.d, s.width);
    }
  }
}

// Slopes of weights lie one behind the other: gain, shift, W1, b1, W2, b2.
template <class T, bool CENTRED>
void backward(const T *x, const T *gain, const T *shift, const T *inward, const T *outward, const T *kept, const T *facts,
              const T *dy, T *dx, T *slopes, Sizes<T> s, long kind, int threads) {
  constexpr int W = Lanes<T>::count;
  long matrix = s.d * s.width, all = 2 * matrix + 3 * s.d + s.width;
  T *others = set_aside<T>((threads - 1) * all);
#pragma omp parallel num_threads(threads)
  {
    Share share(s.rows);
    T *normed = scratch<T>(s.some * (2 * s.d + 2 * s.width)), *pulled = normed + s.some * s.d;
    T *a = pulled + s.some * s.d, *da = a + s.some * s.width;
    T *own = share.thread ? others + (share.thread - 1) * all : slopes;
    T *gains = own, *shifts = gains + s.d, *first = shifts + s.d, *first_bias = first + matrix;
    T *second = first_bias + s.width, *second_bias = second + matrix;
    if (share.begin == share.end) std::fill(own, own + all, T(0));
    for (T *sums : {gains, shifts, second_bias}) std::fill(sums, sums + s.d, T(0));
    std::fill(first_bias, first_bias + s.width, T(0));
    for (long at = share.begin; at < share.end; at += s.some) {
      long rows = std::min(s.some, share.end - at);
      const T *slope = dy + at * s.d;
      T more = at > share.begin;
      matmul(s.gemm, slope, false, outward, false, T(0), da, rows, s.width, s.d);
      with_kind(kind, [&](auto one) {
        backward_rows<T, decltype(one)::value>(kept + at * s.width, da, a, first_bias, rows, s.width);
      });
      matmul(s.gemm, slope, true, a, false, more, second, s.d, s.width, rows);
      for (long row = 0; row < rows; row++) {
        const T *fact = facts + 2 * (at + row);
        if (gain) scaled(x + (at + row) * s.d, gain, shift, fact[0], fact[1], normed + row * s.d, s.d);
        for (long c = 0; c < s.d; c += W) {
          int m = (int)std::min<long>(W, s.d - c);
          put(second_bias + c, get(second_bias + c, m) + get(slope + row * s.d + c, m), m);
        }
      }
      matmul(s.gemm, da, true, gain ? normed : x + at * s.d, false, more, first, s.width, s.d, rows);
      matmul(s.gemm, da, false, inward, false, T(0), gain ? pulled : dx + at * s.d, rows, s.d, s.width);
      for (long row = 0; gain && row < rows; row++) {
        const T *fact = facts + 2 * (at + row);
        unscaled<T, CENTRED>(x + (at + row) * s.d, gain, fact[0], fact[1], pulled + row * s.d, slope + row * s.d,
                             dx + (at + row) * s.d, gains, shifts, s.d);
      }
    }
    gather(slopes, others, all, share);
  }
}

} // namespace

#define ENTRIES(T, name)                                                                                               \
  extern "C" void forward_##name(void *gemm, const T *x, const T *gain, const T *shift, const T *inward,               \
                                 const T *inward_bias, const T *outward, const T *outward_bias, T *y, T *kept,         \
                                 T *facts, long rows, long d, long width, long some, double eps, long centred,         \
                                 long kind, long threads) {                                                            \
    Sizes<T> s{(Gemm<T>)gemm, rows, d, width, some, eps};                                                              \
    (centred ? forward<T, true> : forward<T, false>)(x, gain, shift, inward, inward_bias, outward, outward_bias, y,    \
                                                     kept, facts, s, kind, (int)threads);                              \
  }                                                                                                                    \
  extern "C" void backward_##name(void *gemm, const T *x, const T *gain, const T *shift, const T *inward,              \
                                  const T *outward, const T *kept, const T *facts, const T *dy, T *dx, T *slopes,      \
                                  long rows, long d, long width, long some, double eps, long centred,       \
                                  long kind, long threads) {                                                           \
    Sizes<T> s{(Gemm<T>)gemm, rows, d, width, some, eps};                                                              \
    (centred ? backward<T, true> : backward<T, false>)(x, gain, shift, inward, outward, kept, facts, dy, dx, slopes,   \
                                                       s, kind, (int)threads);                                 \
  }

ENTRIES(float, f32)
ENTRIES(double, f64)
