// Attention heads over one short sequence. `fused` (t, (heads + 2 kv) d) holds queries, keys and values in this order, as one
// projection writes them; out is (t, heads d). All keys of a head fit into the first caches, so scores never leave them.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "lanes.h"

namespace {

// Queries, or keys in the backward pass, that are worked on together, and vectors of each: as many as registers hold.
constexpr int BLOCK = BYTES == 64 ? 8 : 4, VECTORS = 2;

struct Heads {
  long t, heads, kv, d;
  bool causal;
  long wide() const { return (heads + 2 * kv) * d; }
  long step() const { return heads * d; }
  template <class T> long line() const { return (t + Lanes<T>::count - 1) / Lanes<T>::count * Lanes<T>::count; }
  template <class T> long forward_room() const { return (d + BLOCK) * line<T>(); }
  template <class T> long backward_room() const { return 2 * (d + t) * line<T>(); }
};

// out (R rows, N vectors) = sum over k of a (row, k) times vector k of b, whose last vector has m lanes.
template <class T, int R, int N, bool WHOLE>
INLINE void multiply(const T *a, long row, long each, const T *b, long apart, long count, int m, V<T> (&out)[R][N]) {
  constexpr int W = Lanes<T>::count;
#pragma GCC unroll 8
  for (int r = 0; r < R; r++)
#pragma GCC unroll 8
    for (int n = 0; n < N; n++) out[r][n] = V<T>{};
  for (long k = 0; k < count; k++, b += apart) {
    V<T> v[N];
#pragma GCC unroll 8
    for (int n = 0; n < N; n++) v[n] = WHOLE || n + 1 < N ? load(b + n * W) : load_part(b + n * W, m);
#pragma GCC unroll 8
    for (int r = 0; r < R; r++) {
      V<T> x = spread(a[r * row + k * each]);
#pragma GCC unroll 8
      for (int n = 0; n < N; n++) out[r][n] += x * v[n];
    }
  }
}

// `width` columns of R rows of c = a b, in pieces of at most two vectors.
template <class T, int R, bool ADD>
INLINE void rows(const T *a, long row, long each, const T *b, long apart, long count, T *c, long line, long width) {
  constexpr int W = Lanes<T>::count;
  for (long at = 0; at < width;) {
    long left = width - at;
    auto piece = [&](auto vectors, auto whole) {
      constexpr int N = decltype(vectors)::value;
      constexpr bool WHOLE = decltype(whole)::value;
      int m = WHOLE ? W : (int)(left - (N - 1) * W);
      V<T> out[R][N];
      multiply<T, R, N, WHOLE>(a, row, each, b + at, apart, count, m, out);
      for (int r = 0; r < R; r++)
        for (int n = 0; n < N; n++) {
          T *to = c + r * line + at + n * W;
          int lanes = n + 1 < N ? W : m;
          put(to, ADD ? get(to, lanes) + out[r][n] : out[r][n], lanes);
        }
      at += N * W;
    };
    using std::integral_constant;
    if (left >= VECTORS * W)
      piece(integral_constant<int, VECTORS>{}, std::true_type{});
    else if (left >= W)
      piece(integral_constant<int, 1>{}, std::true_type{});
    else
      piece(integral_constant<int, 1>{}, std::false_type{});
  }
}

// Rows (t, d) with stride `apart`, transposed to (d, line), zero beyond t.
template <class T> void transposed(const T *from, long apart, long t, long d, T *to, long line) {
  constexpr int W = Lanes<T>::count;
  for (long j = 0; j < line; j += W)
    for (long c = 0; c < d; c += W) {
      V<T> square[W];
      int m = (int)std::min<long>(W, d - c);
      for (int k = 0; k < W; k++) square[k] = j + k < t ? get(from + (j + k) * apart + c, m) : V<T>{};
      transpose<T>(square);
      for (int k = 0; k < m; k++) store(to + (c + k) * line + j, square[k]);
    }
}

template <class T> INLINE long upto(long r, long count, long t, bool causal) { return causal ? std::min(t, r + count) : t; }

// Scores of R queries; `line` columns are allocated, `end` are computed.
template <class T, int R>
INLINE void score(const T *q, long apart, const T *keys, long line, long d, long end, T *scores) {
  constexpr int W = Lanes<T>::count;
  rows<T, R, false>(q, apart, 1, keys, line, d, scores, line, (end + W - 1) / W * W);
}

// One head; `room` holds forward_room numbers. The largest score of each query, scaled, and one over its sum go to `sums`.
template <class T> void attend(const T *fused, T *out, T *sums, long h, T scale, const Heads &s, T *room) {
  constexpr int W = Lanes<T>::count;
  long wide = s.wide(), line = s.line<T>(), group = s.heads / s.kv, step = s.step();
  T *keys = room, *scores = keys + s.d * line, *y = out + h * s.d;
  const T *q = fused + h * s.d, *k = fused + (s.heads + h / group) * s.d, *v = fused + (s.heads + s.kv + h / group) * s.d;
  transposed(k, wide, s.t, s.d, keys, line);
  auto some = [&](long r, auto many) {
    constexpr int R = decltype(many)::value;
    long end = upto<T>(r, R, s.t, s.causal), pad = (end + W - 1) / W * W;
    T *own = sums + 2 * (h * s.t + r);
    score<T, R>(q + r * wide, wide, keys, line, s.d, end, scores);
    for (int i = 0; i < R; i++) {
      T *p = scores + i * line;
      long seen = s.causal ? r + i + 1 : s.t;
      V<T> high = spread(T(-INFINITY)), total{};
      for (long j = 0; j < seen; j += W) high = vmax<T>(high, first<T>(load(p + j), seen - j, T(-INFINITY)));
      T top = highest<T>(high);
      for (long j = 0; j < pad; j += W) {
        V<T> e = first<T>(vexp((load(p + j) - top) * scale), seen - j, T(0));
        total += e;
        store(p + j, e);
      }
      own[2 * i] = top * scale, own[2 * i + 1] = T(1) / sum<T>(total);
    }
    T *yr = y + r * step;
    rows<T, R, false>(scores, line, 1, v, wide, end, yr, step, s.d);
    for (int i = 0; i < R; i++, yr += step)
      for (long c = 0; c < s.d; c += W) {
        int m = (int)std::min<long>(W, s.d - c);
        put(yr + c, get(yr + c, m) * own[2 * i + 1], m);
      }
  };
  // Within a block, later values are multiplied by a probability of 0, and 0 times NaN is NaN: a block whose output is not
  // finite is computed again query by query.
  auto all_finite = [&](long r) {
    V<T> zero{};
    for (long i = r; i < r + BLOCK; i++)
      for (long c = 0; c < s.d; c += W) {
        int m = (int)std::min<long>(W, s.d - c);
        zero += get(y + i * step + c, m) * T(0);
      }
    return sum<T>(zero) == T(0);
  };
  long r = 0;
  for (; r + BLOCK <= s.t; r += BLOCK) {
    some(r, std::integral_constant<int, BLOCK>{});
    if (s.causal && !all_finite(r))
      for (long i = r; i < r + BLOCK; i++) some(i, std::integral_constant<int, 1>{});
  }
  for (; r < s.t; r++) some(r, std::integral_constant<int, 1>{});
}

// Backward pass of the heads that share a key head; probabilities are computed again from the maxima and sums that `attend`
// kept. `room` holds backward_room numbers.
template <class T>
void attend_backward(const T *fused, const T *out, const T *sums, const T *dout, T *dfused, long g, T scale, const Heads &s, T *room) {
  constexpr int W = Lanes<T>::count;
  long wide = s.wide(), line = s.line<T>(), group = s.heads / s.kv, step = s.step();
  T *keys = room, *values = keys + s.d * line, *probabilities = values + s.d * line, *dscores = probabilities + s.t * line;
  const T *k = fused + (s.heads + g) * s.d, *v = fused + (s.heads + s.kv + g) * s.d;
  T *dk = dfused + (s.heads + g) * s.d, *dv = dfused + (s.heads + s.kv + g) * s.d;
  transposed(k, wide, s.t, s.d, keys, line);
  transposed(v, wide, s.t, s.d, values, line);
  for (long h = g * group; h < (g + 1) * group; h++) {
    const T *q = fused + h * s.d, *y = out + h * s.d, *dy = dout + h * s.d, *own = sums + 2 * h * s.t;
    T *dq = dfused + h * s.d;
    auto some = [&](long r, auto many) {
      constexpr int R = decltype(many)::value;
      long end = upto<T>(r, R, s.t, s.causal), pad = (end + W - 1) / W * W;
      T *p = probabilities + r * line, *ds = dscores + r * line;
      score<T, R>(q + r * wide, wide, keys, line, s.d, end, p);
      score<T, R>(dy + r * step, step, values, line, s.d, end, ds);
      for (int i = 0; i < R; i++, p += line, ds += line) {
        long seen = s.causal ? r + i + 1 : s.t;
        V<T> along{};
        for (long c = 0; c < s.d; c += W) {
          int m = (int)std::min<long>(W, s.d - c);
          along += get(y + (r + i) * step + c, m) * get(dy + (r + i) * step + c, m);
        }
        T mean = sum<T>(along), top = own[2 * (r + i)], share = own[2 * (r + i) + 1];
        for (long j = 0; j < pad; j += W) {
          V<T> e = first<T>(vexp(load(p + j) * scale - top) * share, seen - j, T(0));
          V<T> dscore = first<T>(e * (load(ds + j) - mean) * scale, seen - j, T(0));
          store(p + j, e), store(ds + j, dscore);
        }
      }
      rows<T, R, false>(dscores + r * line, line, 1, k, wide, end, dq + r * wide, wide, s.d);
    };
    long r = 0;
    for (; r + BLOCK <= s.t; r += BLOCK) some(r, std::integral_constant<int, BLOCK>{});
    for (; r < s.t; r++) some(r, std::integral_constant<int, 1>{});
    auto gather = [&](long j, auto many, auto more) {
      constexpr int R = decltype(many)::value;
      constexpr bool ADD = decltype(more)::value;
      long from = s.causal ? j : 0;
      rows<T, R, ADD>(probabilities + from * line + j, 1, line, dy + from * step, step, s.t - from, dv + j * wide, wide, s.d);
      rows<T, R, ADD>(dscores + from * line + j, 1, line, q + from * wide, wide, s.t - from, dk + j * wide, wide, s.d);
    };
    auto all = [&](auto more) {
      long j = 0;
      for (; j + BLOCK <= s.t; j += BLOCK) gather(j, std::integral_constant<int, BLOCK>{}, more);
      for (; j < s.t; j++) gather(j, std::integral_constant<int, 1>{}, more);
    };
    if (h == g * group)
      all(std::false_type{});
    else
      all(std::true_type{});
  }
}

} // namespace
