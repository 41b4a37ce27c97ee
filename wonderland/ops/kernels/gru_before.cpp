// The gated recurrent unit that resets before the product.
#include "recurrence.h"

namespace {

// Reset before the product, as the books have it: the candidate waits for all reset gates, so a step has two products.
template <class T> void forward_gru_before(Job<T> &j) {
  int panels = (j.e + L<T> - 1) / L<T>, e = j.e;
  T *candidate = j.packed + int64_t(panels) * e * 2 * L<T>;
  Meeting *meeting = nullptr;
#pragma omp parallel num_threads(j.threads) if (j.threads > 1)
  {
    int me = omp_get_thread_num(), all = omp_get_num_threads();
#pragma omp single
    meeting = new Meeting(all);
    pack(j.weight, j.packed, e, 2, panels * me / all, panels * (me + 1) / all);
    pack(j.weight + int64_t(2) * e * e, candidate, e, 1, panels * me / all, panels * (me + 1) / all);
    Share mine(j.b, panels, j.by_units, me, all);
    Active<T> active(j.b);
    meeting->wait();
    for (int s = 0; s < j.t; s++) {
      int count = active.collect(j, mine, s, [&](int row) { return j.before(row, s); });
      for (int p = mine.from; p < mine.to; p++) {
        int u = p * L<T>, n = e - u;
        panel<T, 2>(j.packed + int64_t(p) * e * 2 * L<T>, e, active.in.data(), count, [&](int r, V<T> *a) {
          int row = active.rows[r];
          T *gate = j.gates + j.at(row, s) * 3 * e + u;
          V<T> reset = vsigmoid<T>(get(gate, n) + a[0]);
          put(gate, reset, n), put(gate + e, vsigmoid<T>(get(gate + e, n) + a[1]), n);
          put(j.scratch + int64_t(row) * e + u, reset * get(j.before(row, s) + u, n), n);
        });
      }
      if (j.by_units) meeting->wait();
      count = active.collect(j, mine, s, [&](int row) { return j.scratch + int64_t(row) * e; });
      for (int p = mine.from; p < mine.to; p++) {
        int u = p * L<T>, n = e - u;
        panel<T, 1>(candidate + int64_t(p) * e * L<T>, e, active.in.data(), count, [&](int r, V<T> *a) {
          int row = active.rows[r];
          T *gate = j.gates + j.at(row, s) * 3 * e + u;
          V<T> z = get(gate + e, n), c = vtanh(get(gate + 2 * e, n) + a[0]);
          put(gate + 2 * e, c, n);
          put(j.y + j.at(row, s) * e + u, c + z * (get(j.before(row, s) + u, n) - c), n);
        });
      }
      if (j.by_units) meeting->wait();
    }
    finish(j, mine, mine.from * L<T>, least(mine.to * L<T>, e));
  }
  delete meeting;
}

template <class T> void backward_gru_before(Job<T> &j) {
  constexpr int width = WIDE * L<T>;
  int panels = (j.e + width - 1) / width, e = j.e;
  T *candidate = j.packed + int64_t(panels) * 2 * e * width;
  Meeting *meeting = nullptr;
#pragma omp parallel num_threads(j.threads) if (j.threads > 1)
  {
    int me = omp_get_thread_num(), all = omp_get_num_threads();
#pragma omp single
    meeting = new Meeting(all);
    pack_transposed(j.weight, j.packed, e, 2 * e, panels * me / all, panels * (me + 1) / all);
    pack_transposed(j.weight + int64_t(2) * e * e, candidate, e, e, panels * me / all, panels * (me + 1) / all);
    Share mine(j.b, panels, j.by_units, me, all);
    int from = mine.from * width, to = least(mine.to * width, e);
    Active<T> active(j.b);
    clear(j, mine, 3, from, to);
    meeting->wait();
    for (int s = j.t - 1; s >= 0; s--) {
      int count = active.collect(j, mine, s, [&](int row) { return j.d + (j.at(row, s) * 3 + 2) * e; });
      for (int r = 0; r < count; r++)
        for (int u = from; u < to; u += L<T>) {
          int row = active.rows[r], left = e - u;
          const T *gate = j.gates + j.at(row, s) * 3 * e + u;
          T *d = j.d + j.at(row, s) * 3 * e + u;
          V<T> dh = arriving(j, row, s, u, left), z = get(gate + e, left), c = get(gate + 2 * e, left);
          put(d + e, dh * (get(j.before(row, s) + u, left) - c) * z * (T(1) - z), left);
          put(d + 2 * e, dh * (T(1) - z) * (T(1) - c * c), left);
          put(j.dh + int64_t(row) * e + u, dh * z, left);
        }
      if (j.by_units) meeting->wait();
      for (int q = mine.from; q < mine.to; q++)
        panel<T, WIDE>(candidate + int64_t(q) * e * width, e, active.in.data(), count, [&](int i, V<T> *a) {
          for (int c = 0; c < WIDE; c++) {
            int u = (q * WIDE + c) * L<T>, left = e - u, row = active.rows[i];
            if (left <= 0) break;
            V<T> r = get(j.gates + j.at(row, s) * 3 * e + u, left);
            T *p = j.dh + int64_t(row) * e + u;
            put(p, get(p, left) + a[c] * r, left);
            put(j.d + j.at(row, s) * 3 * e + u, a[c] * get(j.before(row, s) + u, left) * r * (T(1) - r), left);
          }
        });
      if (j.by_units) meeting->wait();
      count = active.collect(j, mine, s, [&](int row) { return j.d + j.at(row, s) * 3 * e; });
      push_back(j, j.packed, 2 * e, mine, active, count);
    }
  }
  delete meeting;
}

} // namespace

ENTRIES(float, f32, gru_before, forward_gru_before, backward_gru_before)
ENTRIES(double, f64, gru_before, forward_gru_before, backward_gru_before)
