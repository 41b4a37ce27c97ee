// One token through any number of layers in one call: an interpreter of the programs that `fast/decode_program.py` writes.
//
// The machine has a residual stream x (rows, dim) and a branch h of the same size: a norm writes the normalised stream into the
// branch, a mixer reads the branch and adds to the stream.
//
// Each instruction is a run of integers: code, how many follow, and those; one real number belongs to each. Weights are taken in
// order from a list. Tensors of the state are found by their index, before and after the step; the sizes of caches, which change
// from token to token, are taken in order from `cache_sizes`.
#include "decode_attention.h"
#include "decode_mamba.h"
#include "decode_pointwise.h"
#include "decode_recurrent.h"
#include "decode_rwkv.h"

namespace {

enum Code { EMBED, LAYER_NORM, RMS_NORM, COPY, BACK, MAMBA, RWKV_TIME, RWKV_CHANNEL, ATTENTION, MLP, RECURRENT, COUNT, FINISH, HEAD };

template <class T> struct Machine {
  std::vector<T> x, h, y; // stream, branch, output of a mixer
  long rows, dim;
  int threads;
  const int64_t *tokens;
  const T *positions; // vectors to be added to embeddings, where they are not learned
  const void *const *weights, *const *before;
  void *const *after;
  const int64_t *cache_sizes;
  T *result;

  const T *in() { return (const T *)*weights++; }
  const T *old(long place) { return (const T *)before[place]; }
  T *fresh(long place) { return (T *)after[place]; }

  void add() {
    for (long c = 0; c < rows * dim; c++) x[c] += y[c];
  }

  template <class F> void norm(F normalise) {
    for (long row = 0; row < rows; row++) normalise(&x[row * dim], &h[row * dim]);
  }

  // False where a token or its position is outside its table.
  bool embed(const T *table, const T *learned, long vocab, long length, const int64_t *seen) {
    for (long row = 0; row < rows; row++)
      if (tokens[row] < 0 || tokens[row] >= vocab || (learned && seen[row] >= length)) return false;
    for (long row = 0; row < rows; row++) {
      const T *from = table + tokens[row] * dim;
      const T *add = learned ? learned + seen[row] * dim : positions ? positions + row * dim : nullptr;
      for (long c = 0; c < dim; c++) x[row * dim + c] = from[c] + (add ? add[c] : T(0));
    }
    return true;
  }

  bool step(int64_t code, const int64_t *n, double number) {
    switch (code) {
    case EMBED: {
      const T *table = in(), *learned = in();
      return embed(table, learned, n[0], n[1], (const int64_t *)old(n[2]));
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
    case BACK:
      x = h;
      break;
    case MAMBA: {
      const T *w[9];
      for (auto &weight : w) weight = in();
      mamba(h.data(), w[0], w[4], w[5], w[1], w[2], w[8], w[6], w[7], w[3], old(n[4]), old(n[4] + 1), y.data(),
            fresh(n[4]), fresh(n[4] + 1), rows, dim, n[0], n[1], n[2], n[3], threads);
      add();
      break;
    }
    case RWKV_TIME: {
      const T *w[9];
      for (auto &weight : w) weight = in();
      long at = n[1];
      rwkv_time(h.data(), w[4], w[5], w[6], w[0], w[1], w[2], w[3], w[7], w[8], old(at), old(at + 1), old(at + 2), y.data(),
                fresh(at + 1), fresh(at + 2), rows, dim, n[0], threads);
      std::copy(h.begin(), h.end(), fresh(at));
      add();
      break;
    }
    case RWKV_CHANNEL: {
      const T *w[5];
      for (auto &weight : w) weight = in();
      rwkv_channel(h.data(), w[3], w[4], w[0], w[1], w[2], old(n[1]), y.data(), rows, dim, n[0], threads);
      std::copy(h.begin(), h.end(), fresh(n[1]));
      add();
      break;
    }
    case ATTENTION: {
      const T *w[6];
      for (auto &weight : w) weight = in();
      Sizes s{rows, dim, n[0], n[1], n[2], n[3], cache_sizes[0], cache_sizes[1], cache_sizes[2], n[4], n[5], cache_sizes[3]};
      cache_sizes += 4;
      attention(h.data(), w[0], w[1], w[2], w[3], old(n[6]), fresh(n[6]), (const int64_t *)old(n[7]), w[4], w[5], y.data(),
                T(number), threads, s);
      add();
      break;
    }
    case MLP: {
      const T *w[4];
      for (auto &weight : w) weight = in();
      mlp(h.data(), w[0], w[1], w[2], w[3], y.data(), rows, dim, n[0], n[1], n[2], threads);
      add();
      break;
    }
    case RECURRENT: {
      const T *w[6];
      for (auto &weight : w) weight = in();
      bool two = n[3] == LSTM;
      recurrent(h.data(), w[0], w[1], w[2], w[3], w[4], w[5], old(n[4]), two ? old(n[4] + 1) : nullptr, fresh(n[4]),
                two ? fresh(n[4] + 1) : nullptr, y.data(), rows, Units{dim, n[0], n[1], n[3], n[2]}, threads);
      add();
      break;
    }
    case COUNT: {
      const int64_t *seen = (const int64_t *)old(n[0]);
      int64_t *more = (int64_t *)fresh(n[0]);
      for (long row = 0; row < rows; row++) more[row] = seen[row] + 1;
      break;
    }
    case FINISH:
      std::copy(n[0] ? h.begin() : x.begin(), n[0] ? h.end() : x.end(), result);
      break;
    case HEAD: {
      const T *weight = in(), *bias = in();
      product(weight, (n[1] ? h : x).data(), dim, bias, result, rows, n[0], dim, threads);
      break;
    }
    }
    return true;
  }
};

static_assert(sizeof(void *) == 8, "addresses and integers lie side by side");

// The arguments that stay the same from token to token.
struct Fixed {
  const int64_t *program;
  const double *numbers;
  const void *const *weights;
  int64_t count, dim, leaves;
};

// The arguments that change. Behind it lie the addresses of the state before and after, then the sizes of caches. `input` holds
// tokens where the program embeds them, else features.
template <class T> struct Arguments {
  const void *input;
  const T *positions;
  T *result;
  int64_t rows, threads;
};

// Not 0: a token or its position was outside its table.
template <class T> long run(const Fixed *fixed, const Arguments<T> *arguments) {
  auto before = (const void *const *)(arguments + 1);
  auto after = (void *const *)(before + fixed->leaves);
  long size = arguments->rows * fixed->dim;
  const int64_t *program = fixed->program;
  std::vector<T> x(size);
  if (program[0] != EMBED) std::copy((const T *)arguments->input, (const T *)arguments->input + size, x.begin());
  Machine<T> machine{std::move(x), std::vector<T>(size), std::vector<T>(size), arguments->rows, fixed->dim,
                     (int)arguments->threads, (const int64_t *)arguments->input, arguments->positions, fixed->weights, before, after,
                     (const int64_t *)(after + fixed->leaves), arguments->result};
  for (long i = 0; i < fixed->count; i++, program += 2 + program[1])
    if (!machine.step(program[0], program + 2, fixed->numbers[i])) return 1;
  return 0;
}

} // namespace

extern "C" long run_f32(const void *fixed, const void *arguments) {
  return run((const Fixed *)fixed, (const Arguments<float> *)arguments);
}
extern "C" long run_f64(const void *fixed, const void *arguments) {
  return run((const Fixed *)fixed, (const Arguments<double> *)arguments);
}
