// Branches of residual blocks one after another, in one pass: each thread takes its sequences through all of them, so that
// nobody waits for the others between two branches, and what one part leaves in a core's cache the next one finds there.
#include "attending.h"
#include "hidden.h"

namespace {

template <class T> void forward(const Branch<T> *branches, long count, Stream<T> s, int threads) {
#pragma omp parallel num_threads(threads)
  {
    Share share(s.b);
    for (const Branch<T> *one = branches; one < branches + count; one++)
      if (one->attends)
        attending(*one, s, share.begin, share.end);
      else
        hidden(*one, s, share.begin * s.t, share.end * s.t);
  }
}

// From the last branch to the first: the first one reached reads dy, all write dx. Slopes of weights are summed by each thread
// for itself, then over threads.
template <class T> void backward(const Branch<T> *branches, long count, const T *dy, T *dx, Stream<T> s, int threads) {
  std::vector<long> before(count + 1);
  for (long i = 0; i < count; i++) before[i + 1] = before[i] + branches[i].all(s.dim);
  T *others = set_aside<T>((threads - 1) * before[count]);
#pragma omp parallel num_threads(threads)
  {
    Share share(s.b);
    for (long i = count; i-- > 0;) {
      const Branch<T> &one = branches[i];
      const T *slope = i == count - 1 ? dy : dx;
      T *own = share.thread ? others + (share.thread - 1) * before[count] + before[i] : one.slopes;
      if (share.begin == share.end)
        std::fill(own, own + one.all(s.dim), T(0));
      else if (one.attends)
        unattending(one, s, slope, dx, own, share.begin, share.end);
      else
        unhidden(one, s, slope, dx, own, share.begin * s.t, share.end * s.t);
    }
#pragma omp barrier
    for (long i = 0; i < count; i++) gather(branches[i].slopes, others + before[i], before[count], branches[i].all(s.dim), share);
  }
}

} // namespace

#define ENTRIES(T, name)                                                                                                 \
  extern "C" void forward_##name(void *gemm, const Branch<T> *branches, long count, long b, long t, long dim, long threads) {  \
    forward(branches, count, Stream<T>{(Gemm<T>)gemm, b, t, dim}, (int)threads);                                         \
  }                                                                                                                      \
  extern "C" void backward_##name(void *gemm, const Branch<T> *branches, long count, const T *dy, T *dx, long b, long t,       \
                                  long dim, long threads) {                                                              \
    backward(branches, count, dy, dx, Stream<T>{(Gemm<T>)gemm, b, t, dim}, (int)threads);                                \
  }

ENTRIES(float, f32)
ENTRIES(double, f64)
