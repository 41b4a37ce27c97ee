// Matrix products by torch's own BLAS routine, called by each thread for its own rows, so that results stay in its core's cache.
#pragma once
#include <omp.h>
#include <vector>

#include "lanes.h"

// The standard interface of a BLAS: columns first, everything by address.
template <class T>
using Gemm = void (*)(const char *, const char *, const int *, const int *, const int *, const T *, const T *, const int *,
                      const T *, const int *, const T *, T *, const int *);

// c (m, n) = a b + beta c, where a is (m, k) or transposed (k, m), and b is (k, n) or transposed (n, k); row-major.
template <class T>
static INLINE void matmul(Gemm<T> gemm, const T *a, bool a_transposed, const T *b, bool b_transposed, T beta, T *c, long m, long n,
                            long k) {
  T one = 1;
  int rows = (int)m, columns = (int)n, depth = (int)k;
  int a_line = a_transposed ? rows : depth, b_line = b_transposed ? depth : columns;
  gemm(b_transposed ? "T" : "N", a_transposed ? "T" : "N", &columns, &rows, &depth, &one, b, &b_line, a, &a_line, &beta, c, &columns);
}

// Memory that is kept by its thread: what a thread works on, and what the caller allocates for the other threads.
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
