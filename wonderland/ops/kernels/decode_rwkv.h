// One token through the two mixers of RWKV.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "small_products.h"

namespace {

template <class T> void blend(const T *x, const T *last, const T *mix, T *out, long d) {
  for (long c = 0; c < d; c++) out[c] = last[c] + mix[c] * (x[c] - last[c]);
}

template <class T> void blend(const T *x, const T *last, const T *mix, T *out, long rows, long d) {
  for (long row = 0; row < rows; row++, x += d, last += d, out += d) blend(x, last, mix, out, d);
}

template <class T>
void rwkv_time(const T *x, const T *mix_r, const T *mix_k, const T *mix_v, const T *receptance, const T *key, const T *value,
          const T *output, const T *decay, const T *bonus, const T *last, const T *sums, const T *top, T *y, T *new_sums,
          T *new_top, long b, long d, long book, int threads) {
  constexpr int W = Lanes<T>::count;
  const T *none = nullptr;
  std::vector<T> in(b * d), r(b * d), k(b * d), v(b * d);
  blend(x, last, mix_r, in.data(), b, d), product(receptance, in.data(), d, none, r.data(), b, d, d, threads);
  blend(x, last, mix_k, in.data(), b, d), product(key, in.data(), d, none, k.data(), b, d, d, threads);
  blend(x, last, mix_v, in.data(), b, d), product(value, in.data(), d, none, v.data(), b, d, d, threads);
  for (long row = 0; row < b; row++) {
    const T *num = sums + row * 2 * d, *den = num + d, *o = top + row * d;
    T *num1 = new_sums + row * 2 * d, *den1 = num1 + d, *o1 = new_top + row * d;
    for (long c = 0; c < d; c += W) {
      int m = (int)std::min<long>(W, d - c);
      V<T> w = -vexp(get(decay + c, m)), kc = get(&k[row * d + c], m), vc = get(&v[row * d + c], m), oc = get(o + c, m);
      V<T> a = get(num + c, m), e = get(den + c, m), present = kc + get(bonus + c, m);
      if (book) present -= w;
      V<T> high = vmax<T>(oc, present), past = vexp(oc - high), now = vexp(present - high);
      put(&in[row * d + c], vsigmoid<T>(get(&r[row * d + c], m)) * (past * a + now * vc) / (past * e + now), m);
      high = vmax<T>(oc + w, kc), past = vexp(oc + w - high), now = vexp(kc - high);
      put(num1 + c, past * a + now * vc, m), put(den1 + c, past * e + now, m), put(o1 + c, high, m);
    }
  }
  product(output, in.data(), d, none, y, b, d, d, threads);
}

template <class T>
void rwkv_channel(const T *x, const T *mix_r, const T *mix_k, const T *receptance, const T *key, const T *value, const T *last,
             T *y, long b, long d, long hidden, int threads) {
  constexpr int W = Lanes<T>::count;
  const T *none = nullptr;
  std::vector<T> in(b * d), r(b * d), h(b * hidden);
  blend(x, last, mix_k, in.data(), b, d), product(key, in.data(), d, none, h.data(), b, hidden, d, threads);
  for (T &one : h) one = one > 0 ? one * one : T(0);
  blend(x, last, mix_r, in.data(), b, d), product(receptance, in.data(), d, none, r.data(), b, d, d, threads);
  product(value, h.data(), hidden, none, y, b, d, hidden, threads);
  for (long c = 0; c < b * d; c += W) {
    int m = (int)std::min<long>(W, b * d - c);
    put(y + c, get(y + c, m) * vsigmoid<T>(get(&r[c], m)), m);
  }
}

} // namespace
