// One token through causal attention: projections, rotation, cache and softmax without leaving the cache.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "small_products.h"

namespace {

struct Sizes {
  long b, dim, heads, kv, kd, vd, n, from_stride, to_stride, rotated, half, copy;
};

// Rotary positions: each pair of features is rotated; its frequency is that of its second member.
template <class T> void rotate(T *vectors, long count, const T *frequencies, T place, const Sizes &s) {
  long pairs = s.rotated / 2, step = s.half ? 1 : 2, apart = s.half ? pairs : 1;
  std::vector<T> cosine(pairs), sine(pairs);
  for (long i = 0; i < pairs; i++) {
    T angle = place * frequencies[i * step + apart];
    cosine[i] = std::cos(angle), sine[i] = std::sin(angle);
  }
  for (long h = 0; h < count; h++, vectors += s.kd)
    for (long i = 0; i < pairs; i++) {
      T &first = vectors[i * step], &second = vectors[i * step + apart], a = first, b = second;
      first = a * cosine[i] - b * sine[i], second = b * cosine[i] + a * sine[i];
    }
}

// WIDE vectors of the weighted mean of values, in two sums each, so that additions do not wait for one another.
template <class T, int WIDE> INLINE void mean(const T *p, const T *values, T *y, T sum_of, long entries, long width) {
  constexpr int W = Lanes<T>::count;
  V<T> even[WIDE] = {}, odd[WIDE] = {};
  long k = 0;
  for (; k + 2 <= entries; k += 2)
#pragma GCC unroll 4
    for (int i = 0; i < WIDE; i++) {
      even[i] += p[k] * load(values + k * width + i * W);
      odd[i] += p[k + 1] * load(values + (k + 1) * width + i * W);
    }
  for (int i = 0; i < WIDE; i++) {
    if (k < entries) even[i] += p[k] * load(values + k * width + i * W);
    store(y + i * W, (even[i] + odd[i]) / sum_of);
  }
}

// One head over n + 1 entries of a cache: softmax of its scores, and the mean of the values.
template <class T>
void attend_token(const T *q, const T *keys, const T *values, T *y, T *p, T scale, T alibi, long width, const Sizes &s) {
  constexpr int W = Lanes<T>::count;
  long total = s.n + 1, j = 0;
  for (; j + W <= total; j += W) tile<T, W, 1, true>(keys + j * width, q, 0, nullptr, p + j, 0, s.kd, width);
  for (; j < total; j++) p[j] = dot(q, keys + j * width, s.kd);
  for (j = 0; j < total; j++) p[j] = p[j] * scale - alibi * T(s.n - j);
  V<T> tops = spread<T>(-INFINITY), sums{};
  for (j = 0; j + W <= total; j += W) tops = vmax<T>(load(p + j), tops);
  T top = highest<T>(tops), sum_of = 0;
  for (; j < total; j++) top = p[j] > top ? p[j] : top;
  for (j = 0; j + W <= total; j += W) {
    V<T> e = vexp(load(p + j) - top);
    store(p + j, e);
    sums += e;
  }
  for (; j < total; j++) sum_of += p[j] = std::exp(p[j] - top);
  sum_of += sum<T>(sums);
  long c = 0;
  for (; c + 4 * W <= s.vd; c += 4 * W) mean<T, 4>(p, values + c, y + c, sum_of, total, width);
  for (; c + W <= s.vd; c += W) mean<T, 1>(p, values + c, y + c, sum_of, total, width);
  for (; c < s.vd; c++) {
    T one = 0;
    for (j = 0; j < total; j++) one += p[j] * values[j * width + c];
    y[c] = one / sum_of;
  }
}

template <class T>
void attention(const T *x, const T *project, const T *project_bias, const T *out, const T *out_bias, const T *from, T *to,
          const int64_t *seen, const T *frequencies, const T *slopes, T *y, T scale, int threads, const Sizes &s) {
  constexpr long WORTH = 1 << 14;
  long width = s.kv * (s.kd + s.vd), queries = s.heads * s.kd, group = s.heads / s.kv, all = queries + width;
  std::vector<T> fused(s.b * all), mixed(s.b * s.heads * s.vd), scores(s.b * s.heads * (s.n + 1));
  product(project, x, s.dim, project_bias, fused.data(), s.b, all, s.dim, threads);
  for (long row = 0; row < s.b; row++) {
    T *own = &fused[row * all], *entries = to + row * s.to_stride;
    if (frequencies) rotate(own, s.heads + s.kv, frequencies, T(seen[row]), s);
    if (s.copy) std::copy(from + row * s.from_stride, from + row * s.from_stride + s.n * width, entries);
    std::copy(own + queries, own + all, entries + s.n * width);
  }
#pragma omp parallel for num_threads(threads) if (threads > 1 && s.b * s.heads * s.n * (s.kd + s.vd) > WORTH)
  for (long i = 0; i < s.b * s.heads; i++) {
    long row = i / s.heads, h = i % s.heads;
    const T *keys = to + row * s.to_stride + h / group * s.kd;
    const T *values = to + row * s.to_stride + s.kv * s.kd + h / group * s.vd;
    attend_token(&fused[row * all + h * s.kd], keys, values, &mixed[i * s.vd], &scores[i * (s.n + 1)], scale,
         slopes ? slopes[h] : T(0), width, s);
  }
  product(out, mixed.data(), s.heads * s.vd, out_bias, y, s.b, s.dim, s.heads * s.vd, threads);
}

} // namespace
