// The gated recurrent unit that resets after the product.
#include "recurrence.h"

namespace {

// Reset after the product, as cuDNN and torch do. d holds dr, dz, what reaches the recurrent candidate, dn.
template <class T> struct GruAfter {
  static constexpr int G = 3, D = 4;
  static INLINE void forward(const Job<T> &j, int row, int s, int u, int n, V<T> *a) {
    T *gate = j.gates + j.at(row, s) * 3 * j.e + u;
    V<T> r = vsigmoid<T>(get(gate, n) + a[0]), z = vsigmoid<T>(get(gate + j.e, n) + a[1]);
    V<T> q = a[2] + get(j.extra + u, n);
    V<T> c = vtanh(get(gate + 2 * j.e, n) + r * q);
    put(j.y + j.at(row, s) * j.e + u, c + z * (get(j.before(row, s) + u, n) - c), n);
    if (!j.kept) return;
    put(j.kept + j.at(row, s) * j.e + u, q, n);
    put(gate, r, n), put(gate + j.e, z, n), put(gate + 2 * j.e, c, n);
  }
  static INLINE V<T> backward(const Job<T> &j, int row, int s, int u, int n, V<T> dh) {
    const T *gate = j.gates + j.at(row, s) * 3 * j.e + u;
    T *d = j.d + j.at(row, s) * 4 * j.e + u;
    V<T> r = get(gate, n), z = get(gate + j.e, n), c = get(gate + 2 * j.e, n);
    V<T> q = get(j.kept + j.at(row, s) * j.e + u, n);
    V<T> dn = dh * (T(1) - z) * (T(1) - c * c);
    put(d, dn * q * r * (T(1) - r), n);
    put(d + j.e, dh * (get(j.before(row, s) + u, n) - c) * z * (T(1) - z), n);
    put(d + 2 * j.e, dn * r, n);
    put(d + 3 * j.e, dn, n);
    return dh * z;
  }
};

} // namespace

RECURRENCE(gru, GruAfter)
