// One token through a Mamba mixer: projections, convolution, steps, state and gate without leaving the cache.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "small_products.h"

namespace {

// -e^a for m channels whose n entries follow each other, channels side by side.
template <class T> INLINE void rates_of(const T *a_log, T *rates, long n, int m) {
  constexpr int W = Lanes<T>::count;
  for (long j = 0; j < n; j += W) {
    int wide = (int)std::min<long>(W, n - j);
    V<T> square[W];
#pragma GCC unroll 16
    for (int k = 0; k < W; k++) square[k] = k < m ? get(a_log + k * n + j, wide) : V<T>{};
    transpose<T>(square);
#pragma GCC unroll 16
    for (int k = 0; k < W; k++)
      if (k < wide) store(rates + (j + k) * W, -vexp(square[k]));
  }
}

template <class T>
void mamba(const T *x, const T *in_proj, const T *conv, const T *conv_bias, const T *x_proj, const T *dt_proj,
          const T *dt_bias, const T *a_log, const T *skip, const T *out_proj, const T *tail, const T *state, T *y,
          T *new_tail, T *new_state, long b, long dim, long inner, long n, long rank, long width, int threads) {
  constexpr int W = Lanes<T>::count;
  long wide = rank + 2 * n;
  std::vector<T> both(b * 2 * inner), u(b * inner), maps(b * wide), delta(b * inner), out(b * inner), rates(n * W);
  product(in_proj, x, dim, (const T *)nullptr, both.data(), b, 2 * inner, dim, threads);
  for (long row = 0; row < b; row++) {
    const T *past = tail + row * (width - 1) * inner, *raw = &both[row * 2 * inner];
    T *next = new_tail + row * (width - 1) * inner;
    for (long c = 0; c < inner; c += W) {
      int m = (int)std::min<long>(W, inner - c);
      V<T> total = get(conv_bias + c, m);
      for (long j = 0; j < width; j++) {
        V<T> tap{};
        for (int k = 0; k < m; k++) tap[k] = conv[(c + k) * width + j];
        total += tap * get(j + 1 < width ? past + j * inner + c : raw + c, m);
      }
      put(&u[row * inner + c], total * vsigmoid<T>(total), m);
    }
    for (long j = 0; j + 2 < width; j++) std::copy(past + (j + 1) * inner, past + (j + 2) * inner, next + j * inner);
    if (width > 1) std::copy(raw, raw + inner, next + (width - 2) * inner);
  }
  product(x_proj, u.data(), inner, (const T *)nullptr, maps.data(), b, wide, inner, threads);
  product(dt_proj, maps.data(), wide, dt_bias, delta.data(), b, inner, rank, threads);
#pragma omp parallel for num_threads(threads) firstprivate(rates) if (threads > 1 && b * inner * n > (1 << 15))
  for (long c = 0; c < inner; c += W) {
    int m = (int)std::min<long>(W, inner - c);
    rates_of(a_log + c * n, rates.data(), n, m);
    for (long row = 0; row < b; row++) {
      const T *B = &maps[row * wide + rank], *C = B + n, *s = state + row * n * inner + c;
      T *after = new_state + row * n * inner + c;
      V<T> d = vsoftplus<T>(get(&delta[row * inner + c], m)), uc = get(&u[row * inner + c], m), du = d * uc;
      V<T> acc = get(skip + c, m) * uc, zc = get(&both[row * 2 * inner + inner + c], m);
      for (long j = 0; j < n; j++) {
        V<T> now = vexp(d * load(&rates[j * W])) * get(s + j * inner, m) + du * B[j];
        put(after + j * inner, now, m);
        acc += now * C[j];
      }
      put(&out[row * inner + c], acc * zc * vsigmoid<T>(zc), m);
    }
  }
  product(out_proj, out.data(), inner, (const T *)nullptr, y, b, dim, inner, threads);
}

} // namespace
