// Matrix products by the routine that torch itself uses, called by each thread for its own rows: what one part leaves in a
// core's cache the next one finds there.
#pragma once
#include <omp.h>
#include <vector>

#include "lanes.h"

// The standard interface of a BLAS: columns first, everything by address.
template <class T>
using Gemm = void (*)(const char *, const char *, const int *, const int *, const int *, const T *, const T *, const int *,
                      const T *, const int *, const T *, T *, const int *);

// c (m, n) = a b + beta c, where a is (m, k) or turned (k, m), and b is (k, n) or turned (n, k); rows first.
template <class T>
static INLINE void matmul(Gemm<T> gemm, const T *a, bool a_turned, const T *b, bool b_turned, T beta, T *c, long m, long n,
                            long k) {
  T one = 1;
  int rows = (int)m, columns = (int)n, depth = (int)k;
  int a_line = a_turned ? rows : depth, b_line = b_turned ? depth : columns;
  gemm(b_turned ? "T" : "N", a_turned ? "T" : "N", &columns, &rows, &depth, &one, b, &b_line, a, &a_line, &beta, c, &columns);
}

// Memory that stays with its thread: for what each thread works on, and for what the caller sets aside for the others.
template <class T, int USE = 0> static T *scratch(long count) {
  static thread_local std::vector<T> memory;
  if ((long)memory.size() < count) memory.resize(count);
  return memory.data();
}
template <class T> static T *set_aside(long count) { return scratch<T, 1>(count); }

// The rows of this thread.
struct Share {
  long begin, end, thread, threads;
  explicit Share(long rows) : thread(omp_get_thread_num()), threads(omp_get_num_threads()) {
    begin = rows * thread / threads, end = rows * (thread + 1) / threads;
  }
};

// Sums of all threads, once they are through: each has its own, those of the further threads `apart`; the first one's are the
// result.
template <class T> static void gather(T *result, const T *others, long apart, long count, const Share &share) {
  long from = count * share.thread / share.threads, to = count * (share.thread + 1) / share.threads;
  for (long other = 0; other + 1 < share.threads; other++)
    for (long i = from; i < to; i++) result[i] += others[other * apart + i];
}
