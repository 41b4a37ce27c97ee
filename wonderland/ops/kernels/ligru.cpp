// The light gated recurrent unit: one gate.
#include "recurrence.h"

namespace {

template <class T> struct LiGru {
  static constexpr int G = 2, D = 2;
  static INLINE void forward(const Job<T> &j, int row, int s, int u, int n, V<T> *a) {
    T *gate = j.gates + j.at(row, s) * 2 * j.e + u;
    V<T> g = vsigmoid<T>(get(gate, n) + a[0]), c = activate<T>(get(gate + j.e, n) + a[1], j.kind);
    V<T> h = get(j.before(row, s) + u, n);
    put(j.y + j.at(row, s) * j.e + u, g * c + (T(1) - g) * h, n);
    put(gate, g, n), put(gate + j.e, c, n);
  }
  static INLINE V<T> backward(const Job<T> &j, int row, int s, int u, int n, V<T> dh) {
    const T *gate = j.gates + j.at(row, s) * 2 * j.e + u;
    T *d = j.d + j.at(row, s) * 2 * j.e + u;
    V<T> g = get(gate, n), c = get(gate + j.e, n), h = get(j.before(row, s) + u, n);
    put(d, dh * (c - h) * g * (T(1) - g), n);
    put(d + j.e, dh * g * derivative<T>(c, j.kind), n);
    return dh * (T(1) - g);
  }
};

} // namespace

RECURRENCE(ligru, LiGru)
