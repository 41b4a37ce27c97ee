// Products of a sparse matrix, given by rows, with a dense one; its gradient; and the softmax over each row's entries.
// Every row of an output is written by one thread, so that results do not depend on the number of threads.
#include <algorithm>
#include <cmath>

#include "lanes.h"

namespace {

constexpr long TILE = 64, AHEAD = 6;

// y[i, h, :] = sum over entries e of row i of w[place[e], h] * x[column[e], h, :]; w and place may be null.
template <class T>
void product(const long *start, const long *column, const long *place, const T *w, const T *x, T *y, long rows,
             long heads, long wide, int threads) {
  const long d = heads * wide;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 128)
  for (long i = 0; i < rows; i++) {
    const long begin = start[i], end = start[i + 1];
    for (long h = 0; h < heads; h++)
      for (long c = 0; c < wide; c += TILE) {
        const long n = std::min(TILE, wide - c), at = h * wide + c;
        T sum[TILE] = {};
        if (n == TILE) {
          for (long e = begin; e < end; e++) {
            if (e + AHEAD < end) {
              const char *next = (const char *)(x + column[e + AHEAD] * d + at);
              for (long b = 0; b < (long)(TILE * sizeof(T)); b += 64) __builtin_prefetch(next + b);
            }
            const T f = w ? w[(place ? place[e] : e) * heads + h] : T(1);
            const T *from = x + column[e] * d + at;
#pragma omp simd
            for (long k = 0; k < TILE; k++) sum[k] += f * from[k];
          }
        } else {
          for (long e = begin; e < end; e++) {
            const T f = w ? w[(place ? place[e] : e) * heads + h] : T(1);
            const T *from = x + column[e] * d + at;
#pragma omp simd
            for (long k = 0; k < n; k++) sum[k] += f * from[k];
          }
        }
        T *to = y + i * d + at;
        for (long k = 0; k < n; k++) to[k] = sum[k];
      }
  }
}

// The same for several narrow heads: an entry's row is read once for all of them. WIDE is a head's width, d at most 512.
template <class T, int WIDE>
void narrow(const long *start, const long *column, const long *place, const T *w, const T *x, T *y, long rows,
            long heads, int threads) {
  const long d = heads * WIDE;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 128)
  for (long i = 0; i < rows; i++) {
    const long begin = start[i], end = start[i + 1];
    alignas(64) T sum[512];
    std::fill(sum, sum + d, T(0));
    for (long e = begin; e < end; e++) {
      if (e + 4 < end) {
        const char *next = (const char *)(x + column[e + 4] * d);
        for (long b = 0; b < (long)(d * sizeof(T)); b += 64) __builtin_prefetch(next + b);
      }
      const T *f = w + (place ? place[e] : e) * heads, *from = x + column[e] * d;
      for (long h = 0; h < heads; h++) {
        const T share = f[h];
#pragma omp simd
        for (int k = 0; k < WIDE; k++) sum[h * WIDE + k] += share * from[h * WIDE + k];
      }
    }
    std::copy(sum, sum + d, y + i * d);
  }
}

template <class T, int WIDE>
void narrow_entries(const long *start, const long *column, const T *dy, const T *x, T *dw, long rows, long heads,
                    int threads) {
  const long d = heads * WIDE;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 128)
  for (long i = 0; i < rows; i++) {
    const T *a = dy + i * d;
    for (long e = start[i]; e < start[i + 1]; e++) {
      if (e + 4 < start[i + 1]) {
        const char *next = (const char *)(x + column[e + 4] * d);
        for (long b = 0; b < (long)(d * sizeof(T)); b += 64) __builtin_prefetch(next + b);
      }
      const T *c = x + column[e] * d;
      for (long h = 0; h < heads; h++) {
        T sum = 0;
        for (int k = 0; k < WIDE; k++) sum += a[h * WIDE + k] * c[h * WIDE + k];
        dw[e * heads + h] = sum;
      }
    }
  }
}

// out[i, :] = sum over entries e of row i of v[place[e], :].
template <class T>
void gather(const long *start, const long *place, const T *v, T *out, long rows, long wide, int threads) {
#pragma omp parallel for num_threads(threads) schedule(dynamic, 256)
  for (long i = 0; i < rows; i++) {
    T *to = out + i * wide;
    for (long k = 0; k < wide; k++) to[k] = 0;
    for (long e = start[i]; e < start[i + 1]; e++) {
      const T *from = v + place[e] * wide;
      if (e + 6 < start[i + 1]) __builtin_prefetch(v + place[e + 6] * wide);
      for (long k = 0; k < wide; k++) to[k] += from[k];
    }
  }
}

// dw[e, h] = <dy[i, h, :], x[column[e], h, :]> for each entry e of row i.
template <class T>
void entries(const long *start, const long *column, const T *dy, const T *x, T *dw, long rows, long heads, long wide,
             int threads) {
  const long d = heads * wide;
#pragma omp parallel for num_threads(threads) schedule(dynamic, 128)
  for (long i = 0; i < rows; i++)
    for (long e = start[i]; e < start[i + 1]; e++) {
      const T *b = x + column[e] * d;
      if (e + 3 < start[i + 1]) {
        const char *next = (const char *)(x + column[e + 3] * d);
        for (long k = 0; k < (long)(d * sizeof(T)) && k < 512; k += 64) __builtin_prefetch(next + k);
      }
      for (long h = 0; h < heads; h++) {
        const T *a = dy + i * d + h * wide, *c = b + h * wide;
        T sum = 0;
#pragma omp simd reduction(+ : sum)
        for (long k = 0; k < wide; k++) sum += a[k] * c[k];
        dw[e * heads + h] = sum;
      }
    }
}

// Softmax over the entries of each row, for each head alone: p = exp(s - max) / sum.
template <class T> void softmax(const long *start, const T *s, T *p, long rows, long heads, int threads) {
#pragma omp parallel for num_threads(threads) schedule(dynamic, 256)
  for (long i = 0; i < rows; i++)
    for (long h = 0; h < heads; h++) {
      T top = -INFINITY, sum = 0;
      for (long e = start[i]; e < start[i + 1]; e++) top = std::max(top, s[e * heads + h]);
      if (top == -INFINITY) top = 0;
      for (long e = start[i]; e < start[i + 1]; e++) sum += p[e * heads + h] = std::exp(s[e * heads + h] - top);
      const T f = sum > 0 ? 1 / sum : 0;
      for (long e = start[i]; e < start[i + 1]; e++) p[e * heads + h] *= f;
    }
}

template <class T>
void softmax_grad(const long *start, const T *p, const T *dp, T *ds, long rows, long heads, int threads) {
#pragma omp parallel for num_threads(threads) schedule(dynamic, 256)
  for (long i = 0; i < rows; i++)
    for (long h = 0; h < heads; h++) {
      T sum = 0;
      for (long e = start[i]; e < start[i + 1]; e++) sum += p[e * heads + h] * dp[e * heads + h];
      for (long e = start[i]; e < start[i + 1]; e++) ds[e * heads + h] = p[e * heads + h] * (dp[e * heads + h] - sum);
    }
}

constexpr long MOST_HEADS = 64;

// Attention of GAT: s = leaky(a[column] + b[row]), p = softmax over the entries of each row. Heads lie side by side, so that
// they are the inner loop; at most 64 of them.
template <class T>
void scores(const long *start, const long *column, const T *a, const T *b, T *p, double slope, long rows, long heads,
            int threads) {
#pragma omp parallel for num_threads(threads) schedule(dynamic, 256)
  for (long i = 0; i < rows; i++) {
    const long begin = start[i], end = start[i + 1];
    T top[MOST_HEADS], sum[MOST_HEADS];
    for (long h = 0; h < heads; h++) top[h] = -INFINITY, sum[h] = 0;
    for (long e = begin; e < end; e++) {
      const T *from = a + column[e] * heads;
      T *to = p + e * heads;
      if (e + 8 < end) __builtin_prefetch(a + column[e + 8] * heads);
#pragma omp simd
      for (long h = 0; h < heads; h++) {
        const T s = from[h] + b[i * heads + h];
        const T v = s > 0 ? s : s * (T)slope;
        to[h] = v;
        top[h] = v > top[h] ? v : top[h];
      }
    }
    for (long e = begin; e < end; e++) {
      T *to = p + e * heads;
      constexpr int W = Lanes<T>::count;
      for (long h = 0; h < heads; h += W) {
        const int m = (int)std::min<long>(W, heads - h);
        const V<T> gap = get(to + h, m) - get(top + h, m);
        put(to + h, vexp(gap), m);
      }
      for (long h = 0; h < heads; h++) sum[h] += to[h];
    }
    for (long h = 0; h < heads; h++) sum[h] = sum[h] > 0 ? 1 / sum[h] : 0;
    for (long e = begin; e < end; e++)
#pragma omp simd
      for (long h = 0; h < heads; h++) p[e * heads + h] *= sum[h];
  }
}

// Gradients of the scores: ds for each entry (in place of dp), and db summed over each row.
template <class T>
void scores_grad(const long *start, const long *column, const T *a, const T *b, const T *p, T *dp, T *db, double slope,
                 long rows, long heads, int threads) {
#pragma omp parallel for num_threads(threads) schedule(dynamic, 256)
  for (long i = 0; i < rows; i++) {
    const long begin = start[i], end = start[i + 1];
    T sum[MOST_HEADS], total[MOST_HEADS];
    for (long h = 0; h < heads; h++) sum[h] = total[h] = 0;
    for (long e = begin; e < end; e++)
#pragma omp simd
      for (long h = 0; h < heads; h++) sum[h] += p[e * heads + h] * dp[e * heads + h];
    for (long e = begin; e < end; e++) {
      const T *from = a + column[e] * heads;
      if (e + 8 < end) __builtin_prefetch(a + column[e + 8] * heads);
#pragma omp simd
      for (long h = 0; h < heads; h++) {
        const T g = p[e * heads + h] * (dp[e * heads + h] - sum[h]);
        const T v = from[h] + b[i * heads + h] > 0 ? g : g * (T)slope;
        dp[e * heads + h] = v;
        total[h] += v;
      }
    }
    for (long h = 0; h < heads; h++) db[i * heads + h] = total[h];
  }
}

} // namespace

#define ENTRIES(T, name)                                                                                               \
  extern "C" void product_##name(const long *start, const long *column, const long *place, const T *w, const T *x,     \
                                 T *y, long rows, long heads, long wide, long threads) {                               \
    const bool few = w && heads > 1 && heads * wide <= 512;                                                            \
    if (few && wide == 8) narrow<T, 8>(start, column, place, w, x, y, rows, heads, (int)threads);                      \
    else if (few && wide == 16) narrow<T, 16>(start, column, place, w, x, y, rows, heads, (int)threads);               \
    else if (few && wide == 32) narrow<T, 32>(start, column, place, w, x, y, rows, heads, (int)threads);               \
    else product<T>(start, column, place, w, x, y, rows, heads, wide, (int)threads);                                   \
  }                                                                                                                    \
  extern "C" void gather_##name(const long *start, const long *place, const T *v, T *out, long rows, long wide,        \
                                long threads) {                                                                        \
    gather<T>(start, place, v, out, rows, wide, (int)threads);                                                         \
  }                                                                                                                    \
  extern "C" void entries_##name(const long *start, const long *column, const T *dy, const T *x, T *dw, long rows,     \
                                 long heads, long wide, long threads) {                                                \
    if (wide == 8) narrow_entries<T, 8>(start, column, dy, x, dw, rows, heads, (int)threads);                          \
    else if (wide == 16) narrow_entries<T, 16>(start, column, dy, x, dw, rows, heads, (int)threads);                   \
    else if (wide == 32) narrow_entries<T, 32>(start, column, dy, x, dw, rows, heads, (int)threads);                   \
    else entries<T>(start, column, dy, x, dw, rows, heads, wide, (int)threads);                                        \
  }                                                                                                                    \
  extern "C" void softmax_##name(const long *start, const T *s, T *p, long rows, long heads, long threads) {           \
    softmax<T>(start, s, p, rows, heads, (int)threads);                                                                \
  }                                                                                                                    \
  extern "C" void softmax_grad_##name(const long *start, const T *p, const T *dp, T *ds, long rows, long heads,        \
                                      long threads) {                                                                  \
    softmax_grad<T>(start, p, dp, ds, rows, heads, (int)threads);                                                      \
  }                                                                                                                    \
  extern "C" void scores_##name(const long *start, const long *column, const T *a, const T *b, T *p, double slope,     \
                                long rows, long heads, long threads) {                                                 \
    scores<T>(start, column, a, b, p, slope, rows, heads, (int)threads);                                               \
  }                                                                                                                    \
  extern "C" void scores_grad_##name(const long *start, const long *column, const T *a, const T *b, const T *p, T *dp, \
                                     T *db, double slope, long rows, long heads, long threads) {                       \
    scores_grad<T>(start, column, a, b, p, dp, db, slope, rows, heads, (int)threads);                                  \
  }

ENTRIES(float, f32)
ENTRIES(double, f64)
