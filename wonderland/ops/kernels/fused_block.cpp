// Residual blocks in one pass: each thread takes its sequences (attention) or rows (MLP) through the whole block, so that
// threads wait for each other once and intermediate results stay in a core's cache.
#include "fused_attention_block.h"
#include "fused_mlp_block.h"

namespace {

template <class T> void forward(const FusedBlock<T> &block, Stream<T> s, int threads) {
#pragma omp parallel num_threads(threads)
  {
    Share share(s.b);
    if (block.attends)
      attention_forward(block, s, share.begin, share.end);
    else
      mlp_forward(block, s, share.begin, share.end);
  }
}

// Gradients of weights are summed by each thread for itself, then over threads.
template <class T> void backward(const FusedBlock<T> &block, const T *dy, T *dx, Stream<T> s, int threads) {
  long size = block.grads_size(s.dim);
  T *others = set_aside<T>((threads - 1) * size);
#pragma omp parallel num_threads(threads)
  {
    Share share(s.b);
    T *own = share.thread ? others + (share.thread - 1) * size : block.grads;
    if (share.begin == share.end)
      std::fill(own, own + size, T(0));
    else if (block.attends)
      attention_backward(block, s, dy, dx, own, share.begin, share.end);
    else
      mlp_backward(block, s, dy, dx, own, share.begin, share.end);
#pragma omp barrier
    gather(block.grads, others, size, size, share);
  }
}

} // namespace

#define ENTRIES(T, name)                                                                                               \
  extern "C" void forward_##name(void *gemm, const FusedBlock<T> *block, long b, long t, long dim, long threads) {     \
    forward(*block, Stream<T>{(Gemm<T>)gemm, b, t, dim}, (int)threads);                                                \
  }                                                                                                                    \
  extern "C" void backward_##name(void *gemm, const FusedBlock<T> *block, const T *dy, T *dx, long b, long t,          \
                                  long dim, long threads) {                                                            \
    backward(*block, dy, dx, Stream<T>{(Gemm<T>)gemm, b, t, dim}, (int)threads);                                       \
  }

ENTRIES(float, f32)
ENTRIES(double, f64)
