// Update rules in one pass over memory, for many tensors at once. Row r of `table` holds the addresses of parameters,
// gradients and states; `numbers` are what tensors are updated with, `apart` from one tensor to the next (0 if the same for
// all). Work is cut by elements, whatever the tensors.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "small_products.h"

namespace {

template <class T> T sign(T x) { return T(x > T(0)) - T(x < T(0)); }

struct Sgd {
  static constexpr int states = 0;
  template <class T> static void one(T &p, T g, T &, T &, const T *c) { p -= c[0] * (g + c[1] * p); }
};

struct Momentum {
  static constexpr int states = 1;
  template <class T> static void one(T &p, T g, T &v, T &, const T *c) {
    v = c[1] * v + (g + c[2] * p);
    p -= c[0] * v;
  }
};

struct HeavyBall {
  static constexpr int states = 1;
  template <class T> static void one(T &p, T g, T &v, T &, const T *c) {
    v = c[1] * v - c[0] * (g + c[2] * p);
    p += v;
  }
};

struct Nesterov {
  static constexpr int states = 1;
  template <class T> static void one(T &p, T g, T &v, T &, const T *c) {
    g += c[2] * p;
    v = c[1] * v + g;
    p -= c[0] * (g + c[1] * v);
  }
};

struct Adagrad {
  static constexpr int states = 1;
  template <class T> static void one(T &p, T g, T &s, T &, const T *c) {
    g += c[1] * p;
    s += g * g;
    p -= c[0] * g / (std::sqrt(s + c[3]) + c[2]);
  }
};

struct Rmsprop {
  static constexpr int states = 1;
  template <class T> static void one(T &p, T g, T &s, T &, const T *c) {
    g += c[1] * p;
    s = c[2] * s + c[3] * g * g;
    p -= c[0] * g / (std::sqrt(s + c[5]) + c[4]);
  }
};

struct Adadelta {
  static constexpr int states = 2;
  template <class T> static void one(T &p, T g, T &s, T &d, const T *c) {
    g += c[1] * p;
    s = c[2] * s + c[3] * g * g;
    T step = std::sqrt(d + c[4]) / std::sqrt(s + c[4]) * g;
    d = c[2] * d + c[3] * step * step;
    p -= c[0] * step;
  }
};

// Numbers of Adam and its kin: rate by correction 1, decay, 1 - beta 1, beta 2, 1 - beta 2, root of correction 2, eps, rate.
struct Adam {
  static constexpr int states = 2;
  template <class T> static void one(T &p, T g, T &m, T &s, const T *c) {
    g += c[1] * p;
    m += c[2] * (g - m);
    s = c[3] * s + c[4] * g * g;
    p -= c[0] * m / (std::sqrt(s) / c[5] + c[6]);
  }
};

struct Adamw {
  static constexpr int states = 2;
  template <class T> static void one(T &p, T g, T &m, T &s, const T *c) {
    p -= c[7] * c[1] * p;
    m += c[2] * (g - m);
    s = c[3] * s + c[4] * g * g;
    p -= c[0] * m / (std::sqrt(s) / c[5] + c[6]);
  }
};

struct Yogi {
  static constexpr int states = 2;
  template <class T> static void one(T &p, T g, T &m, T &s, const T *c) {
    g += c[1] * p;
    m += c[2] * (g - m);
    T square = g * g;
    s += c[4] * square * sign(square - s);
    p -= c[0] * m / (std::sqrt(s) / c[5] + c[6]);
  }
};

struct Lion {
  static constexpr int states = 1;
  template <class T> static void one(T &p, T g, T &m, T &, const T *c) {
    p -= c[0] * (sign(c[2] * m + c[3] * g) + c[1] * p);
    m = c[4] * m + c[5] * g;
  }
};

struct ScheduleFree {
  static constexpr int states = 2;
  template <class T> static void one(T &y, T g, T &z, T &s, const T *c) {
    s = c[3] * s + c[4] * g * g;
    T d = g / (std::sqrt(s) / c[5] + c[6]) + c[1] * y;
    y += c[7] * (z - y) + c[2] * d;
    z -= c[0] * d;
  }
};

constexpr int MOST = 8;

template <class Rule, class T>
void piece(T *__restrict p, const T *__restrict g, T *__restrict a, T *__restrict b, const double *numbers, long width,
           long n) {
  T c[MOST] = {}, none = 0;
  for (long k = 0; k < width; k++) c[k] = T(numbers[k]);
  for (long i = 0; i < n; i++) {
    if constexpr (Rule::states == 0) Rule::one(p[i], g[i], none, none, c);
    else if constexpr (Rule::states == 1) Rule::one(p[i], g[i], a[i], none, c);
    else Rule::one(p[i], g[i], a[i], b[i], c);
  }
}

template <class Rule, class T>
void all(const int64_t *table, const int64_t *sizes, const double *numbers, long tensors, long width, long apart,
         int threads) {
  auto at = [&](int row, long i) { return row < 2 + Rule::states ? (T *)table[row * tensors + i] : nullptr; };
  long total = 0;
  for (long i = 0; i < tensors; i++) total += sizes[i];
#pragma omp parallel for num_threads(threads) schedule(static) if (total > 16384)
  for (int part = 0; part < threads; part++) {
    long from = total * part / threads / 64 * 64, to = part + 1 < threads ? total * (part + 1) / threads / 64 * 64 : total;
    long start = 0;
    for (long i = 0; i < tensors && start < to; start += sizes[i++]) {
      long low = std::max(from - start, 0L), high = std::min(to - start, (long)sizes[i]);
      if (low >= high) continue;
      T *a = at(2, i), *b = at(3, i);
      piece<Rule, T>(at(0, i) + low, at(1, i) + low, a ? a + low : a, b ? b + low : b, numbers + i * apart, width,
                     high - low);
    }
  }
}

constexpr long PIECE = 2048; // sums are made of so many squares each, whatever the threads, so that bits do not depend on them

// Gradients scaled down to a norm where theirs is larger; gives the norm they had.
template <class T> double clip(const int64_t *table, const int64_t *sizes, double limit, long tensors, int threads) {
  std::vector<std::pair<T *, long>> pieces;
  for (long i = 0; i < tensors; i++)
    for (long at = 0; at < sizes[i]; at += PIECE) pieces.push_back({(T *)table[i] + at, std::min(PIECE, sizes[i] - at)});
  long count = (long)pieces.size();
  bool many = count > 8;
  std::vector<double> squares(count);
#pragma omp parallel for num_threads(threads) schedule(static) if (many)
  for (long i = 0; i < count; i++) squares[i] = (double)dot(pieces[i].first, pieces[i].first, pieces[i].second);
  double norm = 0;
  for (double square : squares) norm += square;
  norm = std::sqrt(norm);
  double factor = limit / (norm + 1e-6);
  if (!(factor >= 1)) {
    T by = T(factor);
#pragma omp parallel for num_threads(threads) schedule(static) if (many)
    for (long i = 0; i < count; i++)
      for (long k = 0; k < pieces[i].second; k++) pieces[i].first[k] *= by;
  }
  return norm;
}

} // namespace

extern "C" double clip_f32(const int64_t *table, const int64_t *sizes, double limit, long tensors, long threads) {
  return clip<float>(table, sizes, limit, tensors, (int)threads);
}
extern "C" double clip_f64(const int64_t *table, const int64_t *sizes, double limit, long tensors, long threads) {
  return clip<double>(table, sizes, limit, tensors, (int)threads);
}

#define ENTRY(Rule, symbol, T, name)                                                                                   \
  extern "C" void symbol##_##name(const int64_t *table, const int64_t *sizes, const double *numbers, long tensors,     \
                                  long width, long apart, long threads) {                                              \
    all<Rule, T>(table, sizes, numbers, tensors, width, apart, (int)threads);                                          \
  }
#define ENTRIES(Rule, symbol) ENTRY(Rule, symbol, float, f32) ENTRY(Rule, symbol, double, f64)

ENTRIES(Sgd, sgd)
ENTRIES(Momentum, momentum)
ENTRIES(HeavyBall, heavy_ball)
ENTRIES(Nesterov, nesterov)
ENTRIES(Adagrad, adagrad)
ENTRIES(Rmsprop, rmsprop)
ENTRIES(Adadelta, adadelta)
ENTRIES(Adam, adam)
ENTRIES(Adamw, adamw)
ENTRIES(Yogi, yogi)
ENTRIES(Lion, lion)
ENTRIES(ScheduleFree, schedule_free)
