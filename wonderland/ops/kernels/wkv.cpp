// The weighted average of RWKV: sums of past values decay per channel, and every exponential is taken below a running
// maximum. k, v, y are (b, t, d), decay and bonus (d), sums (b, 2, d), top (b, d). The backward pass recomputes the states
// from a checkpoint (b, segments, 3, d) and keeps the adjoint in the scale of the forward state, so that nothing overflows.
#include <algorithm>
#include <vector>

#include "lanes.h"

namespace {

constexpr long SEGMENT = 16, CHUNK = 64;
constexpr int SIDE = 2; // vectors of channels

// e^(x - max) and e^(y - max): one of them is 1, so one exponential does for both.
template <class T> struct Pair {
  V<T> x, y, top;
};
template <class T> INLINE Pair<T> balance(V<T> x, V<T> y) {
  V<T> gap = x - y, size = gap < V<T>{} ? gap : -gap, e = vexp(size), one = spread<T>(T(1));
  return {gap < V<T>{} ? e : one, gap < V<T>{} ? one : e, gap < V<T>{} ? y : x};
}

template <class T> struct Sums {
  V<T> a, b, o;
};
template <class T> INLINE Sums<T> advance(Sums<T> s, V<T> w, V<T> k, V<T> v) {
  Pair<T> e = balance<T>(s.o + w, k);
  return {e.x * s.a + e.y * v, e.x * s.b + e.y, e.top};
}

// Tasks are rows and chunks of channels; time goes by in segments, and within one each vector makes all its steps, so that
// a row of memory is used while it is near.
template <class T>
void forward(const T *k, const T *v, const T *decay, const T *bonus, const T *sums, const T *top, const int64_t *lengths,
             T *y, T *last, T *highest, T *saved, long b, long t, long d, int threads) {
  constexpr int W = Lanes<T>::count;
  long chunks = (d + CHUNK - 1) / CHUNK, segments = (t + SEGMENT - 1) / SEGMENT;
#pragma omp parallel for collapse(2) num_threads(threads) schedule(static)
  for (long row = 0; row < b; row++)
    for (long part = 0; part < chunks; part++) {
      long begin = part * CHUNK, end = std::min(d, begin + CHUNK), real = lengths ? lengths[row] : t;
      Sums<T> states[CHUNK / W];
      for (long c = begin, n = 0; c < end; c += W, n++) {
        int m = (int)std::min<long>(W, end - c);
        states[n] = {V<T>{}, V<T>{}, spread<T>(T(-1e38))};
        if (sums)
          states[n] = {get(sums + row * 2 * d + c, m), get(sums + (row * 2 + 1) * d + c, m), get(top + row * d + c, m)};
      }
      for (long segment = 0; segment < segments; segment++) {
        long i0 = segment * SEGMENT, i1 = std::min(t, i0 + SEGMENT), i2 = std::max(i0, std::min(i1, real));
        // Each step waits for the one before it, so several vectors of channels go side by side.
        auto side_by_side = [&](auto many, long c, long n) {
          constexpr int N = decltype(many)::value;
          int m = N > 1 ? W : (int)std::min<long>(W, end - c);
          V<T> w[N], u[N];
          Sums<T> s[N];
#pragma GCC unroll 4
          for (int j = 0; j < N; j++) {
            w[j] = get(decay + c + j * W, m), u[j] = get(bonus + c + j * W, m), s[j] = states[n + j];
            if (saved) {
              T *at = saved + (row * segments + segment) * 3 * d + c + j * W;
              put(at, s[j].a, m), put(at + d, s[j].b, m), put(at + 2 * d, s[j].o, m);
            }
          }
          for (long i = i0; i < i2; i++)
#pragma GCC unroll 4
            for (int j = 0; j < N; j++) {
              long at = (row * t + i) * d + c + j * W;
              V<T> ki = get(k + at, m), vi = get(v + at, m);
              Pair<T> e = balance<T>(s[j].o, ki + u[j]);
              put(y + at, (e.x * s[j].a + e.y * vi) * reciprocal<T>(e.x * s[j].b + e.y), m);
              s[j] = advance<T>(s[j], w[j], ki, vi);
            }
#pragma GCC unroll 4
          for (int j = 0; j < N; j++) {
            for (long i = i2; i < i1; i++) put(y + (row * t + i) * d + c + j * W, V<T>{}, m);
            states[n + j] = s[j];
          }
        };
        long c = begin, n = 0;
        for (; c + SIDE * W <= end; c += SIDE * W, n += SIDE) side_by_side(std::integral_constant<int, SIDE>{}, c, n);
        for (; c < end; c += W, n++) side_by_side(std::integral_constant<int, 1>{}, c, n);
      }
      for (long c = begin, n = 0; c < end; c += W, n++) {
        int m = (int)std::min<long>(W, end - c);
        put(last + row * 2 * d + c, states[n].a, m), put(last + (row * 2 + 1) * d + c, states[n].b, m);
        put(highest + row * d + c, states[n].o, m);
      }
    }
}

// ddecay and dbonus are (b, d): the caller sums over rows.
template <class T>
void backward(const T *k, const T *v, const T *decay, const T *bonus, const int64_t *lengths, const T *saved, const T *dy,
              const T *dlast, T *dk, T *dv, T *ddecay, T *dbonus, T *dsums, long b, long t, long d, int threads) {
  constexpr int W = Lanes<T>::count;
  struct Adjoint {
    V<T> a, b, w, u;
  };
  long chunks = (d + CHUNK - 1) / CHUNK, segments = (t + SEGMENT - 1) / SEGMENT;
#pragma omp parallel for collapse(2) num_threads(threads) schedule(static)
  for (long row = 0; row < b; row++)
    for (long part = 0; part < chunks; part++) {
      long begin = part * CHUNK, end = std::min(d, begin + CHUNK), real = lengths ? lengths[row] : t;
      Adjoint adjoints[CHUNK / W];
      for (long c = begin, n = 0; c < end; c += W, n++) {
        int m = (int)std::min<long>(W, end - c);
        adjoints[n] = {get(dlast + row * 2 * d + c, m), get(dlast + (row * 2 + 1) * d + c, m), V<T>{}, V<T>{}};
      }
      for (long segment = segments - 1; segment >= 0; segment--) {
        long i0 = segment * SEGMENT, i1 = std::min(t, i0 + SEGMENT), i2 = std::max(i0, std::min(i1, real));
        for (long c = begin, n = 0; c < end; c += W, n++) {
          int m = (int)std::min<long>(W, end - c);
          V<T> w = get(decay + c, m), u = get(bonus + c, m);
          Adjoint g = adjoints[n];
          Sums<T> s[SEGMENT + 1];
          const T *from = saved + (row * segments + segment) * 3 * d + c;
          s[0] = {get(from, m), get(from + d, m), get(from + 2 * d, m)};
          for (long i = i0; i < i2; i++) {
            long at = (row * t + i) * d + c;
            s[i - i0 + 1] = advance<T>(s[i - i0], w, get(k + at, m), get(v + at, m));
          }
          for (long i = i1 - 1; i >= i2; i--) {
            long at = (row * t + i) * d + c;
            put(dk + at, V<T>{}, m), put(dv + at, V<T>{}, m);
          }
          for (long i = i2 - 1; i >= i0; i--) {
            long at = (row * t + i) * d + c;
            Sums<T> old = s[i - i0];
            V<T> ki = get(k + at, m), vi = get(v + at, m), gi = get(dy + at, m);
            // the state's own update
            Pair<T> e = balance<T>(old.o + w, ki);
            V<T> dvi = g.a * e.y, dki = e.y * (g.a * vi + g.b);
            g.w += e.x * (g.a * old.a + g.b * old.b);
            g.a *= e.x, g.b *= e.x;
            // the output
            e = balance<T>(old.o, ki + u);
            V<T> under = T(1) / (e.x * old.b + e.y), yi = (e.x * old.a + e.y * vi) * under, share = gi * under;
            dvi += share * e.y;
            V<T> now = share * e.y * (vi - yi);
            dki += now, g.u += now;
            g.a += share * e.x, g.b -= share * e.x * yi;
            put(dk + at, dki, m), put(dv + at, dvi, m);
          }
          adjoints[n] = g;
        }
      }
      for (long c = begin, n = 0; c < end; c += W, n++) {
        int m = (int)std::min<long>(W, end - c);
        put(ddecay + row * d + c, adjoints[n].w, m), put(dbonus + row * d + c, adjoints[n].u, m);
        put(dsums + row * 2 * d + c, adjoints[n].a, m), put(dsums + (row * 2 + 1) * d + c, adjoints[n].b, m);
      }
    }
}

} // namespace

#define ENTRIES(T, name)                                                                                               \
  extern "C" void forward_##name(const T *k, const T *v, const T *decay, const T *bonus, const T *sums, const T *top,  \
                                 const int64_t *lengths, T *y, T *last, T *highest, T *saved, long b, long t, long d,  \
                                 long threads) {                                                                       \
    forward<T>(k, v, decay, bonus, sums, top, lengths, y, last, highest, saved, b, t, d, (int)threads);                \
  }                                                                                                                    \
  extern "C" void backward_##name(const T *k, const T *v, const T *decay, const T *bonus, const int64_t *lengths,      \
                                  const T *saved, const T *dy, const T *dlast, T *dk, T *dv, T *ddecay, T *dbonus,     \
                                  T *dsums, long b, long t, long d, long threads) {                                    \
    backward<T>(k, v, decay, bonus, lengths, saved, dy, dlast, dk, dv, ddecay, dbonus, dsums, b, t, d, (int)threads);  \
  }

ENTRIES(float, f32)
ENTRIES(double, f64)
