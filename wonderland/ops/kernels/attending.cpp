// A branch of a residual block in one pass: y = x + W_o attention(W_p norm(x) + b_p) + b_o. Each thread takes whole sequences
// through all of it, so that what one part leaves in its cache the next one finds there.
#include "gemm.h"
#include "heads.h"
#include "norms.h"

namespace {

template <class T> struct Sizes {
  Gemm<T> gemm;
  long b, dim, some; // `some` sequences at a time
  double eps;
  Heads heads;
  long turned, half; // features of a head that turn with the position, and whether pairs are half of them apart

  long wide() const { return heads.wide(); }
  long step() const { return heads.step(); }
};

// Turn all queries and keys of a token by its row of a table (cosines, then sines); `way` is -1 to turn slopes back.
template <class T> void turn(T *vectors, const T *angle, T way, const Sizes<T> &s) {
  long pairs = s.turned / 2, step = s.half ? 1 : 2, apart = s.half ? pairs : 1;
  const T *cosine = angle, *sine = angle + pairs;
  for (long h = 0; h < s.heads.heads + s.heads.kv; h++, vectors += s.heads.d)
    for (long i = 0; i < pairs; i++) {
      T &one = vectors[i * step], &two = vectors[i * step + apart], a = one, b = two;
      one = a * cosine[i] - way * b * sine[i], two = b * cosine[i] + way * a * sine[i];
    }
}

template <class T> INLINE void add_to(T *sums, const T *row, long n) {
  for (long c = 0; c < n; c++) sums[c] += row[c];
}

// Kept for the backward pass: the projections (turned), what the heads say, their sums, mean and scale.
template <class T, bool CENTRED>
void forward(const T *x, const T *gain, const T *shift, const T *project, const T *project_bias, const T *out,
             const T *out_bias, const T *table, T *y, T *fused, T *said, T *sums, T *facts, T scale, Sizes<T> s,
             int threads) {
  long t = s.heads.t, dim = s.dim, wide = s.wide();
#pragma omp parallel num_threads(threads)
  {
    Share share(s.b);
    T *normed = scratch<T>(s.some * t * dim + s.heads.template forward_room<T>()), *room = normed + s.some * t * dim;
    for (long at = share.begin; at < share.end; at += s.some) {
      long count = std::min(s.some, share.end - at), rows = count * t;
      const T *from = x + at * t * dim;
      T *own = fused + at * t * wide, *heads = said + at * t * s.step(), *to = y + at * t * dim, *fact = facts + 2 * at * t;
      for (long row = 0; row < rows; row++) {
        measure<T, CENTRED>(from + row * dim, s.eps, fact[2 * row], fact[2 * row + 1], dim);
        scaled(from + row * dim, gain, shift, fact[2 * row], fact[2 * row + 1], normed + row * dim, dim);
        for (long c = 0; c < dim; c++) to[row * dim + c] = from[row * dim + c] + (out_bias ? out_bias[c] : T(0));
      }
      matmul(s.gemm, normed, false, project, true, T(0), own, rows, wide, dim);
      for (long row = 0; row < rows; row++) {
        if (project_bias) add_to(own + row * wide, project_bias, wide);
        if (table) turn(own + row * wide, table + row % t * s.turned, T(1), s);
      }
      for (long i = 0; i < count; i++)
        for (long h = 0; h < s.heads.heads; h++)
          attend(own + i * t * wide, heads + i * t * s.step(), sums + 2 * (at + i) * s.heads.heads * t, h, scale, s.heads, room);
      matmul(s.gemm, heads, false, out, true, T(1), to, rows, dim, s.step());
    }
  }
}

// Slopes of weights lie one behind the other: gain, shift, W_p, b_p, W_o, b_o.
template <class T, bool CENTRED>
void backward(const T *x, const T *gain, const T *shift, const T *project, const T *out, const T *table, const T *fused,
              const T *said, const T *sums, const T *facts, const T *dy, T *dx, T *slopes, T scale, Sizes<T> s,
              int threads) {
  long t = s.heads.t, dim = s.dim, wide = s.wide(), step = s.step();
  long all = 3 * dim + dim * wide + wide + dim * step;
  T *others = set_aside<T>((threads - 1) * all);
#pragma omp parallel num_threads(threads)
  {
    Share share(s.b);
    long most = s.some * t;
    T *normed = scratch<T>(most * (2 * dim + wide + step) + s.heads.template backward_room<T>());
    T *pulled = normed + most * dim, *dfused = pulled + most * dim, *dsaid = dfused + most * wide, *room = dsaid + most * step;
    T *own = share.thread ? others + (share.thread - 1) * all : slopes;
    T *gains = own, *shifts = gains + dim, *inward = shifts + dim, *inward_bias = inward + dim * wide;
    T *outward = inward_bias + wide, *outward_bias = outward + dim * step;
    if (share.begin == share.end) std::fill(own, own + all, T(0));
    for (T *sums : {gains, shifts, outward_bias}) std::fill(sums, sums + dim, T(0));
    std::fill(inward_bias, inward_bias + wide, T(0));
    for (long at = share.begin; at < share.end; at += s.some) {
      long count = std::min(s.some, share.end - at), rows = count * t;
      const T *from = x + at * t * dim, *slope = dy + at * t * dim, *heads = said + at * t * step, *fact = facts + 2 * at * t;
      T more = at > share.begin;
      matmul(s.gemm, slope, false, out, false, T(0), dsaid, rows, step, dim);
      matmul(s.gemm, slope, true, heads, false, more, outward, dim, step, rows);
      for (long i = 0; i < count; i++)
        for (long g = 0; g < s.heads.kv; g++)
          unattend(fused + (at + i) * t * wide, heads + i * t * step, sums + 2 * (at + i) * s.heads.heads * t,
                   dsaid + i * t * step, dfused + i * t * wide, g, scale, s.heads, room);
      for (long row = 0; row < rows; row++) {
        if (table) turn(dfused + row * wide, table + row % t * s.turned, T(-1), s);
        add_to(inward_bias, dfused + row * wide, wide);
        add_to(outward_bias, slope + row * dim, dim);
        scaled(from + row * dim, gain, shift, fact[2 * row], fact[2 * row + 1], normed + row * dim, dim);
      }
      matmul(s.gemm, dfused, true, normed, false, more, inward, wide, dim, rows);
      matmul(s.gemm, dfused, false, project, false, T(0), pulled, rows, dim, wide);
      for (long row = 0; row < rows; row++)
        unscaled<T, CENTRED>(from + row * dim, gain, fact[2 * row], fact[2 * row + 1], pulled + row * dim, slope + row * dim,
                             dx + (at * t + row) * dim, gains, shifts, dim);
    }
    gather(slopes, others, all, share);
  }
}

} // namespace

#define ENTRIES(T, name)                                                                                               \
  extern "C" void forward_##name(void *gemm, const T *x, const T *gain, const T *shift, const T *project,              \
                                 const T *project_bias, const T *out, const T *out_bias, const T *table, T *y,   \
                                 T *fused, T *said, T *sums, T *facts, double scale, long b, long t, long dim,         \
                                 long some,                                                                            \
                                 long heads, long kv, long d, long causal, double eps, long centred, long turned,      \
                                 long half, long threads) {                                                            \
    Sizes<T> s{(Gemm<T>)gemm, b, dim, some, eps, Heads{t, heads, kv, d, (bool)causal}, turned, half};                        \
    (centred ? forward<T, true> : forward<T, false>)(x, gain, shift, project, project_bias, out, out_bias,             \
                                                     table, y, fused, said, sums, facts, T(scale), s,            \
                                                     (int)threads);                                                    \
  }                                                                                                                    \
  extern "C" void backward_##name(void *gemm, const T *x, const T *gain, const T *shift, const T *project,             \
                                  const T *out, const T *table, const T *fused, const T *said, const T *sums,    \
                                  const T *facts, const T *dy, T *dx, T *slopes, double scale, long b,      \
                                  long t, long dim, long some, long heads, long kv, long d, long causal, double eps,              \
                                  long centred, long turned, long half, long threads) {                                \
    Sizes<T> s{(Gemm<T>)gemm, b, dim, some, eps, Heads{t, heads, kv, d, (bool)causal}, turned, half};                        \
    (centred ? backward<T, true> : backward<T, false>)(x, gain, shift, project, out, table, fused, said, sums,   \
                                                       facts, dy, dx, slopes, T(scale), s, (int)threads);      \
  }

ENTRIES(float, f32)
ENTRIES(double, f64)
