// Attention over short sequences: fused is (b, t, (heads + 2 kv) d), out is (b, t, heads d). Each head is a task.
#include "attention_heads.h"

namespace {

template <class T> void forward(const T *fused, T *out, T *sums, long b, Heads s, T scale, int threads) {
#pragma omp parallel num_threads(threads)
  {
    std::vector<T> room(s.forward_room<T>());
#pragma omp for schedule(static)
    for (long task = 0; task < b * s.heads; task++) {
      long at = task / s.heads;
      attend(fused + at * s.t * s.wide(), out + at * s.t * s.step(), sums + 2 * at * s.heads * s.t, task % s.heads, scale, s,
             room.data());
    }
  }
}

template <class T>
void backward(const T *fused, const T *out, const T *sums, const T *dout, T *dfused, long b, Heads s, T scale, int threads) {
#pragma omp parallel num_threads(threads)
  {
    std::vector<T> room(s.backward_room<T>());
#pragma omp for schedule(static)
    for (long task = 0; task < b * s.kv; task++) {
      long at = task / s.kv, wide = at * s.t * s.wide(), step = at * s.t * s.step();
      attend_backward(fused + wide, out + step, sums + 2 * at * s.heads * s.t, dout + step, dfused + wide, task % s.kv, scale, s,
               room.data());
    }
  }
}

} // namespace

#define ENTRIES(T, name)                                                                                               \
  extern "C" void forward_##name(const T *fused, T *out, T *sums, long b, long t, long heads, long kv, long d,         \
                                 double scale, long causal, long threads) {                                            \
    forward<T>(fused, out, sums, b, Heads{t, heads, kv, d, (bool)causal}, T(scale), (int)threads);                     \
  }                                                                                                                    \
  extern "C" void backward_##name(const T *fused, const T *out, const T *sums, const T *dout, T *dfused, long b,       \
                                  long t, long heads, long kv, long d, double scale, long causal, long threads) {      \
    backward<T>(fused, out, sums, dout, dfused, b, Heads{t, heads, kv, d, (bool)causal}, T(scale), (int)threads);      \
  }

ENTRIES(float, f32)
ENTRIES(double, f64)
