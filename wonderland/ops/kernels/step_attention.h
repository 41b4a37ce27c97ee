// One token through causal attention: projections, rotation, cache and softmax without leaving the cache.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "products.h"

namespace {

struct Sizes {
  long b, dim, heads, kv, kd, vd, n, from_stride, to_stride, turned, half, copy;
};

// Every query and key turns by its position; the frequency of a pair is that of its second member.
template <class T> void rotate(T *vectors, long count, const T *frequencies, T place, const Sizes &s) {
  long pairs = s.turned / 2, step = s.half ? 1 : 2, apart = s.half ? pairs : 1;
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

// One head over n + 1 entries of a cache: softmax of its scores, and the mean of the values.
template <class T>
void look(const T *q, const T *keys, const T *values, T *y, T *p, T scale, T slope, long width, const Sizes &s) {
  constexpr int W = Lanes<T>::count;
  long total = s.n + 1;
  T top = -INFINITY, sum_of = 0;
  for (long j = 0; j < total; j++) {
    p[j] = dot(q, keys + j * width, s.kd) * scale - slope * T(s.n - j);
    top = std::max(top, p[j]);
  }
  V<T> sums{};
  long j = 0;
  for (; j + W <= total; j += W) {
    V<T> e = vexp(load(p + j) - top);
    store(p + j, e);
    sums += e;
  }
  for (; j < total; j++) sum_of += p[j] = std::exp(p[j] - top);
  sum_of += sum<T>(sums);
  for (long c = 0; c < s.vd; c += W) {
    int m = (int)std::min<long>(W, s.vd - c);
    V<T> acc{};
    for (long k = 0; k < total; k++) acc += p[k] * get(values + k * width + c, m);
    put(y + c, acc / sum_of, m);
  }
}

template <class T>
void attention(const T *x, const T *project, const T *project_bias, const T *out, const T *out_bias, const T *from, T *to,
          const long *seen, const T *frequencies, const T *slopes, T *y, T scale, int threads, const Sizes &s) {
  constexpr long WORTH = 1 << 19;
  long width = s.kv * (s.kd + s.vd), queries = s.heads * s.kd, group = s.heads / s.kv;
  std::vector<T> fused(queries + width), mixed(s.heads * s.vd), scores(s.heads * (s.n + 1));
  for (long row = 0; row < s.b; row++, from += s.from_stride, to += s.to_stride) {
    product(project, x + row * s.dim, project_bias, fused.data(), queries + width, s.dim, threads);
    if (frequencies) rotate(fused.data(), s.heads + s.kv, frequencies, T(seen[row]), s);
    if (s.copy) std::copy(from, from + s.n * width, to);
    std::copy(fused.begin() + queries, fused.end(), to + s.n * width);
#pragma omp parallel for num_threads(threads) if (threads > 1 && s.heads * s.n * (s.kd + s.vd) > WORTH)
    for (long h = 0; h < s.heads; h++) {
      const T *keys = to + h / group * s.kd, *values = to + s.kv * s.kd + h / group * s.vd;
      look(&fused[h * s.kd], keys, values, &mixed[h * s.vd], &scores[h * (s.n + 1)], scale, slopes ? slopes[h] : T(0),
           width, s);
    }
    product(out, mixed.data(), out_bias, y + row * s.dim, s.dim, s.heads * s.vd, threads);
  }
}

} // namespace
