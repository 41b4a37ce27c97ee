// One token through a recurrent cell, and the projection to the width of the stream where the state has another.
#pragma once
#include <algorithm>
#include <vector>

#include "decode_pointwise.h"

namespace {

enum Cell { ELMAN, LSTM, GRU_AFTER, GRU_BEFORE, LIGRU };

struct Units {
  long dim, size, gates, cell, activation;
};

template <class T>
void recurrent(const T *x, const T *inward, const T *inner, const T *bias, const T *extra, const T *project,
               const T *project_bias, const T *h, const T *c, T *new_h, T *new_c, T *y, long rows, Units n, int threads) {
  constexpr int W = Lanes<T>::count;
  long e = n.size;
  long wide = n.gates * e, first = n.cell == GRU_BEFORE ? 2 : n.gates; // a candidate after its reset waits for the gates
  std::vector<T> inputs(rows * wide), inside(rows * first * e), late(rows * e), held(rows * e);
  product(inward, x, n.dim, bias, inputs.data(), rows, wide, n.dim, threads);
  product(inner, h, e, (const T *)nullptr, inside.data(), rows, first * e, e, threads);
  if (n.cell == GRU_BEFORE) {
    for (long row = 0; row < rows; row++)
      for (long k = 0; k < e; k += W) {
        int m = (int)std::min<long>(W, e - k);
        V<T> reset = vsigmoid<T>(get(&inputs[row * wide + k], m) + get(&inside[row * 2 * e + k], m));
        put(&held[row * e + k], reset * get(h + row * e + k, m), m);
      }
    product(inner + 2 * e * e, held.data(), e, (const T *)nullptr, late.data(), rows, e, e, threads);
  }
  const T *states = new_h;
  for (long row = 0; row < rows; row++, h += e, new_h += e) {
    T *u = &inputs[row * wide], *v = &inside[row * first * e];
    if (n.cell == ELMAN || n.cell == LIGRU) {
      long at = (n.gates - 1) * e;
      for (long k = 0; k < e; k++) u[at + k] += v[at + k];
      activated(&u[at], e, n.activation);
    }
    for (long k = 0; k < e; k += W) {
      int m = (int)std::min<long>(W, e - k);
      auto part = [&](long gate) { return get(&u[gate * e + k], m) + get(gate < first ? &v[gate * e + k] : &late[row * e + k], m); };
      V<T> old = get(h + k, m), next;
      if (n.cell == ELMAN)
        next = get(&u[k], m);
      else if (n.cell == LIGRU) {
        V<T> gate = vsigmoid<T>(part(0));
        next = old + gate * (get(&u[e + k], m) - old);
      } else if (n.cell == LSTM) {
        V<T> cell = vsigmoid<T>(part(1)) * get(c + row * e + k, m) + vsigmoid<T>(part(0)) * vtanh<T>(part(2));
        put(new_c + row * e + k, cell, m);
        next = vsigmoid<T>(part(3)) * vtanh<T>(cell);
      } else {
        V<T> z = vsigmoid<T>(part(1)), proposal;
        if (n.cell == GRU_AFTER) {
          V<T> inside = get(&v[2 * e + k], m);
          if (extra) inside += get(extra + k, m);
          proposal = vtanh<T>(get(&u[2 * e + k], m) + vsigmoid<T>(part(0)) * inside);
        } else
          proposal = vtanh<T>(part(2));
        next = proposal + z * (old - proposal);
      }
      put(new_h + k, next, m);
    }
  }
  if (project)
    product(project, states, e, project_bias, y, rows, n.dim, e, threads);
  else
    std::copy(states, states + rows * e, y);
}

} // namespace
