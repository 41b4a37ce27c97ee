// A program of steps: one token through any number of parts in one call. The machine has a stream x (rows, dim) and a
// branch h; a norm fills the branch from the stream, a mixer reads the branch and adds to the stream.
//
// Each instruction is a run of whole numbers: code, how many follow, and those. Tensors are taken in order from two lists,
// what is read and what is written; one real number belongs to each instruction.
#include "step_attention.h"
#include "step_mamba.h"
#include "step_pointwise.h"
#include "step_recurrent.h"
#include "step_rwkv.h"

namespace {

enum Code { EMBED, LAYER_NORM, RMS_NORM, COPY, MAMBA, RWKV_TIME, RWKV_CHANNEL, ATTENTION, HIDDEN, RECURRENT, COUNT, FINISH, HEAD };

template <class T> struct Machine {
  std::vector<T> x, h, y;
  long rows, dim;
  int threads;
  const void *const *read;
  void *const *write;

  const T *in() { return (const T *)*read++; }
  T *out() { return (T *)*write++; }

  void add() {
    for (long c = 0; c < rows * dim; c++) x[c] += y[c];
  }

  template <class F> void norm(F one) {
    for (long row = 0; row < rows; row++) one(&x[row * dim], &h[row * dim]);
  }

  void step(long code, const long *n, double number) {
    switch (code) {
    case EMBED: {
      const T *table = in(), *places = in();
      for (long row = 0; row < rows; row++) std::copy(table + n[row] * dim, table + (n[row] + 1) * dim, &x[row * dim]);
      if (places)
        for (long c = 0; c < rows * dim; c++) x[c] += places[c];
      break;
    }
    case LAYER_NORM: {
      const T *gain = in(), *shift = in();
      norm([&](const T *from, T *to) { layer_norm(from, gain, shift, number, to, dim); });
      break;
    }
    case RMS_NORM: {
      const T *gain = in();
      norm([&](const T *from, T *to) { rms_norm(from, gain, number, to, dim); });
      break;
    }
    case COPY:
      h = x;
      if (n[0]) std::fill(x.begin(), x.end(), T(0));
      break;
    case MAMBA: {
      const T *w[11];
      for (auto &one : w) one = in();
      T *tail = out(), *state = out();
      mamba(h.data(), w[0], w[4], w[5], w[1], w[2], w[8], w[6], w[7], w[3], w[9], w[10], y.data(), tail, state, rows, dim,
            n[0], n[1], n[2], n[3], threads);
      add();
      break;
    }
    case RWKV_TIME: {
      const T *w[12];
      for (auto &one : w) one = in();
      T *last = out(), *sums = out(), *top = out();
      std::copy(h.begin(), h.end(), last);
      rwkv_time(h.data(), w[4], w[5], w[6], w[0], w[1], w[2], w[3], w[7], w[8], w[9], w[10], w[11], y.data(), sums, top,
                rows, dim, n[0], threads);
      add();
      break;
    }
    case RWKV_CHANNEL: {
      const T *w[6];
      for (auto &one : w) one = in();
      std::copy(h.begin(), h.end(), out());
      rwkv_channel(h.data(), w[3], w[4], w[0], w[1], w[2], w[5], y.data(), rows, dim, n[0], threads);
      add();
      break;
    }
    case ATTENTION: {
      const T *w[5];
      for (auto &one : w) one = in();
      const long *seen = (const long *)in();
      const T *frequencies = in(), *slopes = in();
      T *grown = out();
      Sizes s{rows, dim, n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8], n[9]};
      attention(h.data(), w[0], w[1], w[2], w[3], w[4], grown, seen, frequencies, slopes, y.data(), T(number), threads, s);
      add();
      break;
    }
    case HIDDEN: {
      const T *w[4];
      for (auto &one : w) one = in();
      hidden(h.data(), w[0], w[1], w[2], w[3], y.data(), rows, dim, n[0], n[1], n[2], threads);
      add();
      break;
    }
    case RECURRENT: {
      const T *w[8];
      for (auto &one : w) one = in();
      T *state = out(), *cell = n[3] == LSTM ? out() : nullptr;
      recurrent(h.data(), w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], state, cell, y.data(), rows,
                Units{dim, n[0], n[1], n[3], n[2]}, threads);
      add();
      break;
    }
    case COUNT: {
      const int64_t *seen = (const int64_t *)in();
      int64_t *more = (int64_t *)out();
      for (long row = 0; row < rows; row++) more[row] = seen[row] + 1;
      break;
    }
    case FINISH:
      std::copy(n[0] ? h.begin() : x.begin(), n[0] ? h.end() : x.end(), out());
      break;
    case HEAD: {
      const T *weight = in(), *bias = in();
      T *logits = out();
      for (long row = 0; row < rows; row++)
        product(weight, (n[1] ? h : x).data() + row * dim, bias, logits + row * n[0], n[0], dim, threads);
      break;
    }
    }
  }
};

template <class T>
void run(const T *x, const long *program, const double *numbers, const void *const *read, void *const *write, long count,
         long rows, long dim, long threads) {
  Machine<T> machine{std::vector<T>(rows * dim), std::vector<T>(rows * dim), std::vector<T>(rows * dim), rows, dim,
                     (int)threads, read, write};
  if (x) std::copy(x, x + rows * dim, machine.x.begin());
  for (long i = 0; i < count; i++, program += 2 + program[1]) machine.step(program[0], program + 2, numbers[i]);
}

} // namespace

extern "C" void run_f32(const float *x, const long *program, const double *numbers, const void *const *read,
                        void *const *write, long count, long rows, long dim, long threads) {
  run<float>(x, program, numbers, read, write, count, rows, dim, threads);
}
extern "C" void run_f64(const double *x, const long *program, const double *numbers, const void *const *read,
                        void *const *write, long count, long rows, long dim, long threads) {
  run<double>(x, program, numbers, read, write, count, rows, dim, threads);
}
