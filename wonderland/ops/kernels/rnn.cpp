// The Elman recurrence, with a leak.
#include "recurrence.h"

namespace {

template <class T> struct Elman {
  static constexpr int G = 1, D = 1;
  static INLINE void forward(const Job<T> &j, int row, int s, int u, int n, V<T> *a) {
    T *gate = j.gates + j.at(row, s) * j.e + u;
    V<T> value = activate<T>(get(gate, n) + a[0], j.kind);
    put(gate, value, n);
    if (j.leak != T(1)) value = j.leak * value + (T(1) - j.leak) * get(j.before(row, s) + u, n);
    put(j.y + j.at(row, s) * j.e + u, value, n);
  }
  static INLINE V<T> backward(const Job<T> &j, int row, int s, int u, int n, V<T> dh) {
    V<T> value = get(j.gates + j.at(row, s) * j.e + u, n);
    put(j.d + j.at(row, s) * j.e + u, j.leak * dh * derivative<T>(value, j.kind), n);
    return (T(1) - j.leak) * dh;
  }
};

} // namespace

RECURRENCE(rnn, Elman)
