// Long short-term memory.
#include "recurrence.h"

namespace {

template <class T> struct Lstm {
  static constexpr int G = 4, D = 4;
  static INLINE void forward(const Job<T> &j, int row, int s, int u, int n, V<T> *a) {
    T *gate = j.gates + j.at(row, s) * 4 * j.e + u;
    T *now = j.c + int64_t(row) * j.e + u;
    V<T> i = vsigmoid<T>(get(gate, n) + a[0]), f = vsigmoid<T>(get(gate + j.e, n) + a[1]);
    V<T> g = vtanh(get(gate + 2 * j.e, n) + a[2]), o = vsigmoid<T>(get(gate + 3 * j.e, n) + a[3]);
    V<T> c = f * get(now, n) + i * g;
    put(now, c, n);
    put(j.y + j.at(row, s) * j.e + u, o * vtanh(c), n);
    if (!j.kept) return;
    put(j.kept + j.at(row, s) * j.e + u, c, n);
    put(gate, i, n), put(gate + j.e, f, n), put(gate + 2 * j.e, g, n), put(gate + 3 * j.e, o, n);
  }
  static INLINE V<T> backward(const Job<T> &j, int row, int s, int u, int n, V<T> dh) {
    const T *gate = j.gates + j.at(row, s) * 4 * j.e + u;
    T *d = j.d + j.at(row, s) * 4 * j.e + u;
    T *carried = j.dc + int64_t(row) * j.e + u;
    const T *last = s ? j.kept + j.at(row, s - 1) * j.e + u : j.c0 + int64_t(row) * j.e + u;
    V<T> i = get(gate, n), f = get(gate + j.e, n), g = get(gate + 2 * j.e, n), o = get(gate + 3 * j.e, n);
    V<T> squashed = vtanh(get(j.kept + j.at(row, s) * j.e + u, n));
    V<T> dc = get(carried, n) + dh * o * (T(1) - squashed * squashed);
    put(d, dc * g * i * (T(1) - i), n);
    put(d + j.e, dc * get(last, n) * f * (T(1) - f), n);
    put(d + 2 * j.e, dc * i * (T(1) - g * g), n);
    put(d + 3 * j.e, dh * squashed * o * (T(1) - o), n);
    put(carried, dc * f, n);
    return V<T>{};
  }
};

} // namespace

RECURRENCE(lstm, Lstm)
