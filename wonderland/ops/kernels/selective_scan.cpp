// The selective scan, fused with the softplus that makes its steps, its skip and its gate: states live in registers and the first cache, the backward pass
// recomputes them from a checkpoint every SEGMENT steps. Channels are the lanes; u, delta, z, y are (b, t, d), a is (n, d),
// B and C are (b, t, n), states are (b, n, d).
#include <algorithm>
#include <vector>

#include "lanes.h"

namespace {

constexpr long SEGMENT = 16;

enum Rule { EULER = 0, HOLD = 1, BILINEAR = 2 };

// What a step does to the state: s = decay * s + weight * B u, and the derivatives of both by delta and by a.
template <class T> struct Step {
  V<T> decay, weight;
};

template <class T, int RULE> INLINE Step<T> discretise(V<T> delta, V<T> a) {
  if (RULE == BILINEAR) {
    V<T> half = delta * a * T(0.5), q = T(1) / (T(1) - half);
    return {(T(1) + half) * q, delta * q};
  }
  V<T> x = delta * a, e = vexp(x);
  if (RULE == EULER) return {e, delta};
  // expm1(x)/x, by its series where the difference would cancel
  V<T> series = T(1) + x * (T(0.5) + x * (T(1) / 6 + x * (T(1) / 24 + x * (T(1) / 120))));
  V<T> exact = (e - T(1)) / x;
  V<T> bound = spread<T>(sizeof(T) == 4 ? T(0.05) : T(1e-3));
  V<T> size = x < V<T>{} ? -x : x;
  return {e, delta * (size < bound ? series : exact)};
}

template <class T> struct Derivatives {
  V<T> decay_delta, decay_a, weight_delta, weight_a;
};

template <class T, int RULE> INLINE Derivatives<T> derivatives(V<T> delta, V<T> a, Step<T> s) {
  if (RULE == BILINEAR) {
    V<T> q = T(1) / (T(1) - delta * a * T(0.5)), qq = q * q;
    return {a * qq, delta * qq, qq, delta * delta * qq * T(0.5)};
  }
  if (RULE == EULER) return {s.decay * a, s.decay * delta, spread<T>(T(1)), V<T>{}};
  V<T> x = delta * a, size = x < V<T>{} ? -x : x;
  V<T> bound = spread<T>(sizeof(T) == 4 ? T(0.05) : T(1e-3));
  V<T> series = delta * delta * (T(0.5) + x * (T(1) / 3 + x * (T(1) / 8 + x * (T(1) / 30))));
  V<T> exact = (delta * s.decay - s.weight) / a;
  return {s.decay * a, s.decay * delta, s.decay, size < bound ? series : exact};
}

// Tasks are rows and chunks of channels. Time goes by in segments, and within one each vector of channels makes all its
// steps: a row of memory is then used while it is near, where walking a single vector through all of time would wait for
// a new page every few steps.
template <class T, int RULE>
void forward(const T *u, long ul, const T *delta, const T *a, const T *B, const T *C, const T *D, const T *z, long zl,
             const T *first, const int64_t *lengths, T *y, T *last, T *saved, long b, long t, long d, long n, long chunk,
             int threads) {
  constexpr int W = Lanes<T>::count;
  long chunks = (d + chunk - 1) / chunk, segments = (t + SEGMENT - 1) / SEGMENT, vectors = (chunk + W - 1) / W;
#pragma omp parallel num_threads(threads)
  {
    std::vector<V<T>> states(n * vectors), as(n * vectors);
#pragma omp for collapse(2) schedule(static)
    for (long row = 0; row < b; row++)
      for (long part = 0; part < chunks; part++) {
        long begin = part * chunk, end = std::min(d, begin + chunk);
        long real = lengths ? lengths[row] : t;
        for (long c = begin, k = 0; c < end; c += W, k++) {
          int m = (int)std::min<long>(W, end - c);
          for (long j = 0; j < n; j++) {
            as[k * n + j] = get(a + j * d + c, m);
            states[k * n + j] = first ? get(first + (row * n + j) * d + c, m) : V<T>{};
          }
        }
        for (long segment = 0; segment < segments; segment++) {
          long i0 = segment * SEGMENT, i1 = std::min(t, i0 + SEGMENT), i2 = std::max(i0, std::min(i1, real));
          for (long c = begin, k = 0; c < end; c += W, k++) {
            int m = (int)std::min<long>(W, end - c);
            V<T> *s = states.data() + k * n, *ak = as.data() + k * n;
            if (saved)
              for (long j = 0; j < n; j++) put(saved + ((row * segments + segment) * n + j) * d + c, s[j], m);
            for (long i = i0; i < i2; i++) {
              const T *Bi = B + (row * t + i) * n, *Ci = C + (row * t + i) * n;
              V<T> ui = get(u + (row * t + i) * ul + c, m), di = vsoftplus<T>(get(delta + (row * t + i) * d + c, m));
              V<T> acc = D ? get(D + c, m) * ui : V<T>{};
#pragma GCC unroll 4
              for (long j = 0; j < n; j++) {
                Step<T> step = discretise<T, RULE>(di, ak[j]);
                s[j] = step.decay * s[j] + (step.weight * ui) * Bi[j];
                acc += s[j] * Ci[j];
              }
              if (z) {
                V<T> zi = get(z + (row * t + i) * zl + c, m);
                acc *= zi * vsigmoid<T>(zi);
              }
              put(y + (row * t + i) * d + c, acc, m);
            }
            for (long i = i2; i < i1; i++) put(y + (row * t + i) * d + c, V<T>{}, m);
          }
        }
        for (long c = begin, k = 0; c < end; c += W, k++)
          for (long j = 0; j < n; j++)
            put(last + (row * n + j) * d + c, states[k * n + j], (int)std::min<long>(W, end - c));
      }
  }
}

// dB and dC are (chunks, b, t, n), da is (b, n, d), dD is (b, d): the caller sums over their first axis.
template <class T, int RULE>
void backward(const T *u, long ul, const T *delta, const T *a, const T *B, const T *C, const T *D, const T *z, long zl,
              const int64_t *lengths, const T *saved, const T *dy, const T *dlast, T *du, T *ddelta, T *da, T *dB, T *dC,
              T *dD, T *dz, T *dfirst, long b, long t, long d, long n, long chunk, int threads) {
  constexpr int W = Lanes<T>::count;
  long chunks = (d + chunk - 1) / chunk, segments = (t + SEGMENT - 1) / SEGMENT;
  long vectors = (chunk + W - 1) / W, padded = (n + W - 1) / W * W;
#pragma omp parallel num_threads(threads)
  {
    std::vector<V<T>> carry(vectors * n), dak(vectors * n), dDk(vectors);
    std::vector<V<T>> s((SEGMENT + 1) * n), decay(SEGMENT * n), weight(RULE == EULER ? 0 : SEGMENT * n);
    std::vector<T> sumB(SEGMENT * padded), sumC(SEGMENT * padded);
#pragma omp for collapse(2) schedule(static)
    for (long row = 0; row < b; row++)
      for (long part = 0; part < chunks; part++) {
        long begin = part * chunk, end = std::min(d, begin + chunk);
        long real = lengths ? lengths[row] : t;
        for (long c = begin, k = 0; c < end; c += W, k++) {
          int m = (int)std::min<long>(W, end - c);
          dDk[k] = V<T>{};
          for (long j = 0; j < n; j++) {
            carry[k * n + j] = dlast ? get(dlast + (row * n + j) * d + c, m) : V<T>{};
            dak[k * n + j] = V<T>{};
          }
        }
        for (long segment = segments - 1; segment >= 0; segment--) {
          long i0 = segment * SEGMENT, i1 = std::min(t, i0 + SEGMENT), i2 = std::max(i0, std::min(i1, real));
          std::fill(sumB.begin(), sumB.end(), T(0));
          std::fill(sumC.begin(), sumC.end(), T(0));
          for (long c = begin, k = 0; c < end; c += W, k++) {
            int m = (int)std::min<long>(W, end - c);
            V<T> *g = carry.data() + k * n, *dA = dak.data() + k * n;
            V<T> ak[n], steps[SEGMENT];
            for (long j = 0; j < n; j++) {
              ak[j] = get(a + j * d + c, m);
              s[j] = get(saved + ((row * segments + segment) * n + j) * d + c, m);
            }
            for (long i = i0; i < i2; i++) {
              V<T> ui = get(u + (row * t + i) * ul + c, m), di = vsoftplus<T>(get(delta + (row * t + i) * d + c, m));
              const T *Bi = B + (row * t + i) * n;
              steps[i - i0] = di;
              V<T> *old = s.data() + (i - i0) * n, *now = old + n, *e = decay.data() + (i - i0) * n,
                   *w = weight.data() + (i - i0) * n;
#pragma GCC unroll 4
              for (long j = 0; j < n; j++) {
                Step<T> step = discretise<T, RULE>(di, ak[j]);
                e[j] = step.decay;
                if (RULE != EULER) w[j] = step.weight;
                now[j] = step.decay * old[j] + (step.weight * ui) * Bi[j];
              }
            }
            for (long i = i1 - 1; i >= i2; i--) {
              long at = (row * t + i) * d + c;
              put(du + at, V<T>{}, m);
              put(ddelta + at, V<T>{}, m);
              if (z) put(dz + at, V<T>{}, m);
            }
            for (long i = i2 - 1; i >= i0; i--) {
              long at = (row * t + i) * d + c;
              V<T> ui = get(u + (row * t + i) * ul + c, m), di = steps[i - i0], gi = get(dy + at, m);
              const T *Bi = B + (row * t + i) * n, *Ci = C + (row * t + i) * n;
              V<T> *old = s.data() + (i - i0) * n, *now = old + n, *e = decay.data() + (i - i0) * n,
                   *w = weight.data() + (RULE == EULER ? 0 : (i - i0) * n);
              V<T> Dk = D ? get(D + c, m) : V<T>{}, raw = Dk * ui, gate = spread(T(1)), gate_grad{};
              if (z) {
                V<T> zi = get(z + (row * t + i) * zl + c, m), sig = vsigmoid<T>(zi);
                gate = zi * sig, gate_grad = gi * sig * (T(1) + zi * (T(1) - sig));
                gi *= gate;
              }
              // Sums over channels are made for as many states as there are lanes at a time.
              for (long j0 = 0; j0 < n; j0 += W) {
                V<T> each[W];
                const V<T> *here = now + j0;
                const T *Cj = Ci + j0;
                if (j0 + W <= n) {
#pragma GCC unroll 16
                  for (int l = 0; l < W; l++) raw += here[l] * Cj[l], each[l] = gi * here[l];
                } else
                  for (int l = 0; l < W; l++) {
                    V<T> value = j0 + l < n ? here[l] : V<T>{};
                    raw += value * (j0 + l < n ? Cj[l] : T(0)), each[l] = gi * value;
                  }
                T *to = &sumC[(i - i0) * padded + j0];
                store(to, load(to) + sums<T>(each));
              }
              if (z) put(dz + at, gate_grad * raw, m);
              dDk[k] += gi * ui;
              V<T> dui = Dk * gi, ddi{}, taken{}, drive = di * ui;
              for (long j0 = 0; j0 < n; j0 += W) {
                V<T> each[W];
                auto one = [&](long l) __attribute__((always_inline)) {
                  long j = j0 + l;
                  V<T> gj = g[j] + gi * Ci[j];
                  if (RULE == EULER) {
                    V<T> back = gj * e[j], along = back * old[j];
                    each[l] = gj * drive;
                    taken += gj * Bi[j];
                    ddi += along * ak[j];
                    dA[j] += along * di;
                    g[j] = back;
                    return;
                  }
                  Step<T> step{e[j], w[j]};
                  Derivatives<T> by = derivatives<T, RULE>(di, ak[j], step);
                  V<T> gw = gj * step.weight, ddecay = gj * old[j], dweight = gj * ui * Bi[j];
                  each[l] = gw * ui;
                  dui += gw * Bi[j];
                  ddi += ddecay * by.decay_delta + dweight * by.weight_delta;
                  dA[j] += ddecay * by.decay_a + dweight * by.weight_a;
                  g[j] = gj * step.decay;
                };
                if (j0 + W <= n) {
#pragma GCC unroll 16
                  for (int l = 0; l < W; l++) one(l);
                } else
                  for (int l = 0; l < W; l++)
                    if (j0 + l < n)
                      one(l);
                    else
                      each[l] = V<T>{};
                T *to = &sumB[(i - i0) * padded + j0];
                store(to, load(to) + sums<T>(each));
              }
              if (RULE == EULER) dui += di * taken, ddi += ui * taken;
              put(du + at, dui, m);
              put(ddelta + at, ddi * vsigmoid<T>(get(delta + at, m)), m);
            }
          }
          for (long i = i0; i < i1; i++)
            for (long j = 0; j < n; j++) {
              long at = ((part * b + row) * t + i) * n + j;
              dB[at] = sumB[(i - i0) * padded + j];
              dC[at] = sumC[(i - i0) * padded + j];
            }
        }
        for (long c = begin, k = 0; c < end; c += W, k++) {
          int m = (int)std::min<long>(W, end - c);
          if (dD) put(dD + row * d + c, dDk[k], m);
          for (long j = 0; j < n; j++) {
            put(da + (row * n + j) * d + c, dak[k * n + j], m);
            if (dfirst) put(dfirst + (row * n + j) * d + c, carry[k * n + j], m);
          }
        }
      }
  }
}

} // namespace

#define CHOOSE(rule, call)                                                                                             \
  if (rule == EULER) {                                                                                                 \
    constexpr int RULE = EULER;                                                                                        \
    call;                                                                                                              \
  } else if (rule == HOLD) {                                                                                           \
    constexpr int RULE = HOLD;                                                                                         \
    call;                                                                                                              \
  } else {                                                                                                             \
    constexpr int RULE = BILINEAR;                                                                                     \
    call;                                                                                                              \
  }

#define ENTRIES(T, name)                                                                                               \
  extern "C" void forward_##name(const T *u, long ul, const T *delta, const T *a, const T *B, const T *C, const T *D,  \
                                 const T *z, long zl, const T *first, const int64_t *lengths, T *y, T *last, T *saved, \
                                 long b, long t, long d, long n, long chunk, long rule, long threads) {                \
    CHOOSE(rule, (forward<T, RULE>(u, ul, delta, a, B, C, D, z, zl, first, lengths, y, last, saved, b, t, d, n, chunk, \
                                   (int)threads)))                                                                     \
  }                                                                                                                    \
  extern "C" void backward_##name(const T *u, long ul, const T *delta, const T *a, const T *B, const T *C, const T *D, \
                                  const T *z, long zl, const int64_t *lengths, const T *saved, const T *dy,            \
                                  const T *dlast, T *du, T *ddelta, T *da, T *dB, T *dC, T *dD, T *dz, T *dfirst,      \
                                  long b, long t, long d, long n, long chunk, long rule, long threads) {               \
    CHOOSE(rule, (backward<T, RULE>(u, ul, delta, a, B, C, D, z, zl, lengths, saved, dy, dlast, du, ddelta, da, dB,    \
                                    dC, dD, dz, dfirst, b, t, d, n, chunk, (int)threads)))                             \
  }

ENTRIES(float, f32)
ENTRIES(double, f64)
