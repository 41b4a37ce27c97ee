// One token through the two mixers of RWKV.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "products.h"

namespace {

template <class T> void blend(const T *x, const T *last, const T *mix, T *out, long d) {
  for (long c = 0; c < d; c++) out[c] = last[c] + mix[c] * (x[c] - last[c]);
}

template <class T>
void rwkv_time(const T *x, const T *mix_r, const T *mix_k, const T *mix_v, const T *receptance, const T *key, const T *value,
          const T *output, const T *decay, const T *bonus, const T *last, const T *sums, const T *top, T *y, T *new_sums,
          T *new_top, long b, long d, long book, int threads) {
  constexpr int W = Lanes<T>::count;
  std::vector<T> in(d), r(d), k(d), v(d);
  for (long row = 0; row < b; row++) {
    const T *xi = x + row * d, *li = last + row * d, *num = sums + row * 2 * d, *den = num + d, *o = top + row * d;
    T *num1 = new_sums + row * 2 * d, *den1 = num1 + d, *o1 = new_top + row * d;
    blend(xi, li, mix_r, in.data(), d), product(receptance, in.data(), (const T *)nullptr, r.data(), d, d, threads);
    blend(xi, li, mix_k, in.data(), d), product(key, in.data(), (const T *)nullptr, k.data(), d, d, threads);
    blend(xi, li, mix_v, in.data(), d), product(value, in.data(), (const T *)nullptr, v.data(), d, d, threads);
    for (long c = 0; c < d; c += W) {
      int m = (int)std::min<long>(W, d - c);
      V<T> w = -vexp(get(decay + c, m)), kc = get(&k[c], m), vc = get(&v[c], m), oc = get(o + c, m);
      V<T> a = get(num + c, m), e = get(den + c, m), present = kc + get(bonus + c, m);
      if (book) present -= w;
      V<T> high = vmax<T>(oc, present), past = vexp(oc - high), now = vexp(present - high);
      put(&in[c], vsigmoid<T>(get(&r[c], m)) * (past * a + now * vc) / (past * e + now), m);
      high = vmax<T>(oc + w, kc), past = vexp(oc + w - high), now = vexp(kc - high);
      put(num1 + c, past * a + now * vc, m), put(den1 + c, past * e + now, m), put(o1 + c, high, m);
    }
    product(output, in.data(), (const T *)nullptr, y + row * d, d, d, threads);
  }
}

template <class T>
void rwkv_channel(const T *x, const T *mix_r, const T *mix_k, const T *receptance, const T *key, const T *value, const T *last,
             T *y, long b, long d, long hidden, int threads) {
  constexpr int W = Lanes<T>::count;
  std::vector<T> in(d), r(d), h(hidden);
  for (long row = 0; row < b; row++) {
    const T *xi = x + row * d, *li = last + row * d;
    blend(xi, li, mix_k, in.data(), d), product(key, in.data(), (const T *)nullptr, h.data(), hidden, d, threads);
    for (long c = 0; c < hidden; c++) h[c] = h[c] > 0 ? h[c] * h[c] : T(0);
    blend(xi, li, mix_r, in.data(), d), product(receptance, in.data(), (const T *)nullptr, r.data(), d, d, threads);
    product(value, h.data(), (const T *)nullptr, y + row * d, d, hidden, threads);
    for (long c = 0; c < d; c += W) {
      int m = (int)std::min<long>(W, d - c);
      put(y + row * d + c, get(y + row * d + c, m) * vsigmoid<T>(get(&r[c], m)), m);
    }
  }
}

} // namespace
