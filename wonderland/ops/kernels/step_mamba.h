// One token through a Mamba mixer: projections, convolution, steps, state and gate without leaving the cache.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "products.h"

namespace {

template <class T>
void mamba(const T *x, const T *in_proj, const T *conv, const T *conv_bias, const T *x_proj, const T *dt_proj,
          const T *dt_bias, const T *a_log, const T *skip, const T *out_proj, const T *tail, const T *state, T *y,
          T *new_tail, T *new_state, long b, long dim, long inner, long n, long rank, long width, int threads) {
  constexpr int W = Lanes<T>::count;
  std::vector<T> both(2 * inner), u(inner), maps(rank + 2 * n), delta(inner), out(inner);
  for (long row = 0; row < b; row++) {
    product(in_proj, x + row * dim, (const T *)nullptr, both.data(), 2 * inner, dim, threads);
    const T *past = tail + row * (width - 1) * inner, *raw = both.data(), *z = raw + inner;
    T *next = new_tail + row * (width - 1) * inner;
    for (long c = 0; c < inner; c += W) {
      int m = (int)std::min<long>(W, inner - c);
      V<T> total = get(conv_bias + c, m);
      for (long j = 0; j < width; j++) {
        V<T> tap{};
        for (int k = 0; k < m; k++) tap[k] = conv[(c + k) * width + j];
        total += tap * get(j + 1 < width ? past + j * inner + c : raw + c, m);
      }
      put(&u[c], total * vsigmoid<T>(total), m);
    }
    for (long j = 0; j + 2 < width; j++) std::copy(past + (j + 1) * inner, past + (j + 2) * inner, next + j * inner);
    if (width > 1) std::copy(raw, raw + inner, next + (width - 2) * inner);
    product(x_proj, u.data(), (const T *)nullptr, maps.data(), rank + 2 * n, inner, threads);
    product(dt_proj, maps.data(), dt_bias, delta.data(), inner, rank, threads);
    const T *B = maps.data() + rank, *C = B + n;
    const T *s = state + row * n * inner;
    T *after = new_state + row * n * inner;
    for (long c = 0; c < inner; c += W) {
      int m = (int)std::min<long>(W, inner - c);
      V<T> d = vsoftplus<T>(get(&delta[c], m)), uc = get(&u[c], m), acc = get(skip + c, m) * uc, zc = get(z + c, m);
      for (long j = 0; j < n; j++) {
        V<T> a{};
        for (int k = 0; k < m; k++) a[k] = a_log[(c + k) * n + j];
        V<T> now = vexp(-d * vexp(a)) * get(s + j * inner + c, m) + d * uc * B[j];
        put(after + j * inner + c, now, m);
        acc += now * C[j];
      }
      put(&out[c], acc * zc * vsigmoid<T>(zc), m);
    }
    product(out_proj, out.data(), (const T *)nullptr, y + row * dim, dim, inner, threads);
  }
}

} // namespace
