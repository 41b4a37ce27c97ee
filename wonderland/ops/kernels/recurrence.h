// Nonlinear recurrences, forward and backward. The input projection of all tokens is done before, as one matrix product;
// here each step multiplies the last state with the recurrent weights and applies the gates while they are in registers.
#pragma once
#include "lanes.h"
#include <atomic>
#include <sched.h>
#include <type_traits>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#define RELAX() _mm_pause()
#else
#define RELAX()
#endif

namespace {

template <class T> constexpr int L = Lanes<T>::count;
constexpr int WIDE = 4; // vectors in a panel of the transposed product

enum Activation { TANH = 0, RELU = 1, IDENTITY = 2 };

// 1 - 2 / (1 + e^2x) loses its relative accuracy near 0; the series of tanh takes over there.
INLINE V<float> vtanh(V<float> x) {
  V<float> q = x * x;
  V<float> p = q * (62.0f / 2835) - 17.0f / 315;
  p = p * q + 2.0f / 15;
  p = p * q - 1.0f / 3;
  V<float> near = x + x * q * p;
  V<float> far = 1.0f - 2.0f * reciprocal<float>(1.0f + vexp(x + x));
  return q < 0.04f ? near : far;
}

INLINE V<double> vtanh(V<double> x) {
  V<double> q = x * x;
  V<double> p = q * (-929569.0 / 638512875) + 21844.0 / 6081075;
  p = p * q - 1382.0 / 155925;
  p = p * q + 62.0 / 2835;
  p = p * q - 17.0 / 315;
  p = p * q + 2.0 / 15;
  p = p * q - 1.0 / 3;
  V<double> near = x + x * q * p;
  V<double> far = 1.0 - 2.0 / (1.0 + vexp(x + x));
  return q < 0.01 ? near : far;
}

template <class T> INLINE V<T> activate(V<T> x, int kind) {
  if (kind == TANH) return vtanh(x);
  return kind == RELU ? (x > V<T>{} ? x : (x == x ? V<T>{} : x)) : x;
}
template <class T> INLINE V<T> derivative(V<T> value, int kind) {
  if (kind == TANH) return T(1) - value * value;
  return kind == RELU ? (value > V<T>{} ? spread<T>(1) : V<T>{}) : spread<T>(1);
}


// Threads wait here for each other; a waiter gives its core away when the others take long.
struct Meeting {
  int members;
  std::atomic<int> arrived{0};
  std::atomic<int> round{0};
  explicit Meeting(int n) : members(n) {}
  void wait() {
    if (members == 1) return;
    int mine = round.load(std::memory_order_relaxed);
    if (arrived.fetch_add(1, std::memory_order_acq_rel) == members - 1) {
      arrived.store(0, std::memory_order_relaxed);
      round.store(mine + 1, std::memory_order_release);
      return;
    }
    for (int spins = 0; round.load(std::memory_order_acquire) == mine; spins++)
      if (spins < 300) RELAX();
      else sched_yield();
  }
};

// out[r] = sum over k of in[r][k] w[k], for R rows and C vectors of outputs; w is packed so that it is read in order.
template <class T, int C, int R, class Done> INLINE void block(const T *w, int n, const T *const *in, Done &&done) {
  constexpr int U = R * C >= 8 ? 1 : 8 / (R * C); // independent sums hide the latency of multiply-adds
  V<T> acc[U][R][C] = {};
  int k = 0;
  for (; k + U <= n; k += U)
#pragma GCC unroll 8
    for (int u = 0; u < U; u++) {
      // The smaller side stays in registers; the other passes through one.
      if constexpr (R < C) {
        V<T> x[R];
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) x[r] = spread<T>(in[r][k + u]);
#pragma GCC unroll 8
        for (int c = 0; c < C; c++) {
          V<T> weight = load(w + ((k + u) * C + c) * L<T>);
#pragma GCC unroll 8
          for (int r = 0; r < R; r++) acc[u][r][c] += x[r] * weight;
        }
      } else {
        V<T> weight[C];
#pragma GCC unroll 8
        for (int c = 0; c < C; c++) weight[c] = load(w + ((k + u) * C + c) * L<T>);
#pragma GCC unroll 8
        for (int r = 0; r < R; r++) {
          V<T> x = spread<T>(in[r][k + u]);
#pragma GCC unroll 8
          for (int c = 0; c < C; c++) acc[u][r][c] += x * weight[c];
        }
      }
    }
  for (; k < n; k++)
    for (int r = 0; r < R; r++)
      for (int c = 0; c < C; c++) acc[0][r][c] += in[r][k] * load(w + (k * C + c) * L<T>);
#pragma GCC unroll 8
  for (int r = 0; r < R; r++) {
#pragma GCC unroll 8
    for (int c = 0; c < C; c++)
#pragma GCC unroll 8
      for (int u = 1; u < U; u++) acc[0][r][c] += acc[u][r][c];
    done(r, acc[0][r]);
  }
}

template <class T, int C, class Done>
INLINE void panel(const T *w, int n, const T *const *in, int rows, Done &&done) {
  constexpr int most = BYTES == 64 ? (C == 4 ? 6 : 8) : C == 4 ? 3 : 4; // what the registers hold
  for (int r = 0; r < rows;) {
    int left = rows - r, take = left <= most ? left : left < 2 * most ? (left + 1) / 2 : most;
    auto each = [&](int i, V<T> *acc) { done(r + i, acc); };
    auto some = [&](auto count) {
      if constexpr (decltype(count)::value <= most) block<T, C, decltype(count)::value>(w, n, in + r, each);
    };
    switch (take) {
    case 1: some(std::integral_constant<int, 1>{}); break;
    case 2: some(std::integral_constant<int, 2>{}); break;
    case 3: some(std::integral_constant<int, 3>{}); break;
    case 4: some(std::integral_constant<int, 4>{}); break;
    case 5: some(std::integral_constant<int, 5>{}); break;
    case 6: some(std::integral_constant<int, 6>{}); break;
    case 7: some(std::integral_constant<int, 7>{}); break;
    default: some(std::integral_constant<int, 8>{});
    }
    r += take;
  }
}

template <class T> struct Job {
  // gates: (b, t, G e), projected inputs on entry, activated gates on exit of the forward pass
  T *gates;
  const T *weight, *extra; // recurrent weights (G e, e); bias of the candidate, for the GRU that resets after
  const T *h0, *c0;
  const int64_t *lengths; // (b,), or null when all rows are full
  T *y, *h, *c;           // states (b, t, e) and the last ones (b, e)
  T *kept;                // (b, t, e): cells of the LSTM, unreset candidates of the GRU; null when not wanted
  T *packed, *scratch;
  const T *dy; // null when only the last states are used
  T *d;        // (b, t, D e): gradients before the gates
  T *dh, *dc;  // (b, e), carried from step to step
  int b, t, e, kind;
  T leak;
  int threads;
  bool by_units; // share units of one step among threads, instead of rows

  INLINE int length(int row) const { return lengths ? int(lengths[row]) : t; }
  INLINE const T *before(int row, int s) const { return s ? y + (int64_t(row) * t + s - 1) * e : h0 + int64_t(row) * e; }
  INLINE int64_t at(int row, int s) const { return int64_t(row) * t + s; }
};

// The share of one thread: rows [first, last) and, of `total` panels, [from, to).
struct Share {
  int first, last, from, to;
  Share(int b, int total, bool by_units, int me, int all) {
    first = by_units ? 0 : b * me / all, last = by_units ? b : b * (me + 1) / all;
    from = by_units ? total * me / all : 0, to = by_units ? total * (me + 1) / all : total;
  }
};

// w[p][k][g][lane] = weight[g e + p L + lane][k]: what one vector of units needs of all its gates, in reading order.
template <class T> void pack(const T *weight, T *w, int e, int G, int from, int to) {
  for (int p = from; p < to; p++)
    for (int g = 0; g < G; g++)
      for (int l = 0; l < L<T>; l++) {
        int unit = p * L<T> + l;
        T *to_here = w + int64_t(p) * e * G * L<T> + g * L<T> + l;
        const T *row = weight + (int64_t(g) * e + unit) * e;
        for (int k = 0; k < e; k++) to_here[int64_t(k) * G * L<T>] = unit < e ? row[k] : T(0);
      }
}

// w[q][j][lane] = weight[j][q WIDE L + lane], for the product with the transpose.
template <class T> void pack_transposed(const T *weight, T *w, int e, int n, int from, int to) {
  constexpr int width = WIDE * L<T>;
  for (int q = from; q < to; q++)
    for (int j = 0; j < n; j++) {
      T *to_here = w + (int64_t(q) * n + j) * width;
      int have = e - q * width < width ? e - q * width : width;
      memcpy(to_here, weight + int64_t(j) * e + q * width, have * sizeof(T));
      for (int l = have; l < width; l++) to_here[l] = 0;
    }
}

// The rows of a share that still have a token at step s, with the vectors that a product reads for them.
template <class T> struct Active {
  std::vector<int> rows;
  std::vector<const T *> in, part;
  explicit Active(int b) : rows(b), in(b), part(b) {}
  template <class Where> int collect(const Job<T> &j, const Share &mine, int s, Where &&where) {
    int count = 0;
    for (int row = mine.first; row < mine.last; row++)
      if (s < j.length(row)) rows[count] = row, in[count++] = where(row);
    return count;
  }
};

// The last states, and zeros where a row has ended.
template <class T> void finish(const Job<T> &j, const Share &mine, int from, int to) {
  for (int row = mine.first; row < mine.last; row++) {
    int n = j.length(row);
    memcpy(j.h + int64_t(row) * j.e + from, j.before(row, n) + from, (to - from) * sizeof(T));
    for (int s = n; s < j.t; s++) memset(j.y + j.at(row, s) * j.e + from, 0, (to - from) * sizeof(T));
  }
}

INLINE int least(int a, int b) { return a < b ? a : b; }

template <class T, template <class> class Cell> void forward(Job<T> &j) {
  constexpr int G = Cell<T>::G;
  int panels = (j.e + L<T> - 1) / L<T>;
  Meeting *meeting = nullptr;
#pragma omp parallel num_threads(j.threads) if (j.threads > 1)
  {
    int me = omp_get_thread_num(), all = omp_get_num_threads();
#pragma omp single
    meeting = new Meeting(all);
    pack(j.weight, j.packed, j.e, G, panels * me / all, panels * (me + 1) / all);
    Share mine(j.b, panels, j.by_units, me, all);
    Active<T> active(j.b);
    meeting->wait();
    for (int s = 0; s < j.t; s++) {
      int count = active.collect(j, mine, s, [&](int row) { return j.before(row, s); });
      for (int p = mine.from; p < mine.to; p++) {
        int u = p * L<T>, n = j.e - u;
        panel<T, G>(j.packed + int64_t(p) * j.e * G * L<T>, j.e, active.in.data(), count,
                    [&](int r, V<T> *a) { Cell<T>::forward(j, active.rows[r], s, u, n, a); });
      }
      if (j.by_units) meeting->wait();
    }
    finish(j, mine, mine.from * L<T>, least(mine.to * L<T>, j.e));
  }
  delete meeting;
}

// dh of `rows` += d at step s times the packed weights, over the panels of a share.
template <class T>
__attribute__((noinline)) void push_back(const Job<T> &j, const T *packed, int n, const Share &mine, Active<T> &active, int count) {
  // As much of a panel at a time as the first cache holds, because all rows read it; wide vectors read it seldom enough.
  constexpr int near = BYTES == 64 ? 1 << 30 : 24 * 1024 / (WIDE * BYTES);
  for (int q = mine.from; q < mine.to; q++)
    for (int k = 0; k < n; k += least(near, n - k)) {
      for (int r = 0; r < count; r++) active.part[r] = active.in[r] + k;
      panel<T, WIDE>(packed + (int64_t(q) * n + k) * WIDE * L<T>, least(near, n - k), active.part.data(), count,
                     [&](int r, V<T> *a) {
                       for (int c = 0; c < WIDE; c++) {
                         int u = (q * WIDE + c) * L<T>, left = j.e - u;
                         if (left <= 0) break;
                         T *p = j.dh + int64_t(active.rows[r]) * j.e + u;
                         put(p, get(p, left) + a[c], left);
                       }
                     });
    }
}

template <class T> void clear(const Job<T> &j, const Share &mine, int segments, int from, int to) {
  for (int row = mine.first; row < mine.last; row++)
    for (int s = j.length(row); s < j.t; s++)
      for (int g = 0; g < segments; g++)
        memset(j.d + (j.at(row, s) * segments + g) * j.e + from, 0, (to - from) * sizeof(T));
}

template <class T> INLINE V<T> arriving(const Job<T> &j, int row, int s, int u, int n) {
  V<T> dh = get(j.dh + int64_t(row) * j.e + u, n);
  return j.dy ? dh + get(j.dy + j.at(row, s) * j.e + u, n) : dh;
}

template <class T, template <class> class Cell> void backward(Job<T> &j) {
  constexpr int G = Cell<T>::G, D = Cell<T>::D, width = WIDE * L<T>;
  int panels = (j.e + width - 1) / width, n = G * j.e;
  Meeting *meeting = nullptr;
#pragma omp parallel num_threads(j.threads) if (j.threads > 1)
  {
    int me = omp_get_thread_num(), all = omp_get_num_threads();
#pragma omp single
    meeting = new Meeting(all);
    pack_transposed(j.weight, j.packed, j.e, n, panels * me / all, panels * (me + 1) / all);
    Share mine(j.b, panels, j.by_units, me, all);
    int from = mine.from * width, to = least(mine.to * width, j.e);
    Active<T> active(j.b);
    clear(j, mine, D, from, to);
    meeting->wait();
    for (int s = j.t - 1; s >= 0; s--) {
      int count = active.collect(j, mine, s, [&](int row) { return j.d + j.at(row, s) * D * j.e; });
      for (int r = 0; r < count; r++)
        for (int u = from; u < to; u += L<T>) {
          int row = active.rows[r], left = j.e - u;
          V<T> direct = Cell<T>::backward(j, row, s, u, left, arriving(j, row, s, u, left));
          put(j.dh + int64_t(row) * j.e + u, direct, left);
        }
      if (j.by_units) meeting->wait();
      push_back(j, j.packed, n, mine, active, count);
    }
  }
  delete meeting;
}

} // namespace

#define ENTRIES(T, suffix, name, run_forward, run_backward)                                                            \
  extern "C" void name##_forward_##suffix(long kind, long b, long t, long e, long threads, long by_units,              \
                                          const T *leak, T *gates, const T *weight, const T *extra, const T *h0,       \
                                          const int64_t *lengths, T *y, T *h, T *c, T *kept, T *packed, T *scratch) {  \
    Job<T> j{};                                                                                                        \
    j.kind = kind, j.leak = leak ? *leak : T(1), j.b = b, j.t = t, j.e = e, j.threads = threads;                       \
    j.by_units = by_units, j.gates = gates, j.weight = weight, j.extra = extra, j.h0 = h0, j.lengths = lengths;        \
    j.y = y, j.h = h, j.c = c, j.kept = kept, j.packed = packed, j.scratch = scratch;                                  \
    run_forward(j);                                                                                                    \
  }                                                                                                                    \
  extern "C" void name##_backward_##suffix(long kind, long b, long t, long e, long threads, long by_units,             \
                                           const T *leak, T *gates, const T *weight, const T *h0, const T *c0,         \
                                           const int64_t *lengths, T *y, T *kept, const T *dy, T *d, T *dh, T *dc,     \
                                           T *packed) {                                                                \
    Job<T> j{};                                                                                                        \
    j.kind = kind, j.leak = leak ? *leak : T(1), j.b = b, j.t = t, j.e = e, j.threads = threads;                       \
    j.by_units = by_units, j.gates = gates, j.weight = weight, j.h0 = h0, j.c0 = c0, j.lengths = lengths;              \
    j.y = y, j.kept = kept, j.dy = dy, j.d = d, j.dh = dh, j.dc = dc, j.packed = packed;                               \
    run_backward(j);                                                                                                   \
  }

// One recurrence for both types of numbers.
#define RECURRENCE(name, Cell)                                                                                         \
  ENTRIES(float, f32, name, (forward<float, Cell>), (backward<float, Cell>))                                           \
  ENTRIES(double, f64, name, (forward<double, Cell>), (backward<double, Cell>))
