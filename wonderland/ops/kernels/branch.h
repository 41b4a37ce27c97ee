// A branch of a residual block, as Python describes it, and what all branches are made of.
#pragma once
#include "gemm.h"
#include "norms.h"

// Fields are eight bytes each, in the order of `ops/branches.py`. What forward is to keep is null where no backward pass comes.
template <class T> struct Branch {
  const T *gain, *shift, *inward, *inward_bias, *outward, *outward_bias, *table;
  const T *x;
  T *y, *kept, *said, *sums, *facts, *slopes;
  double scale, eps;
  long attends, centred, width, some; // `some` rows or sequences at a time
  long activation;                    // for a hidden layer
  long heads, kv, d, causal;          // for attention
  long turned, half; // features of a head that turn with the position, and whether pairs are half of them apart

  // The numbers that are the slopes of all weights: gain, shift, inward and its bias, outward and its bias, in this order.
  long all(long dim) const { return 3 * dim + dim * width + width + dim * (attends ? heads * d : width); }
};

static_assert(sizeof(Branch<float>) == 27 * 8, "ops/branches.py writes 27 fields");

// What all branches of a chain share: `b` sequences of `t` rows of `dim` numbers.
template <class T> struct Stream {
  Gemm<T> gemm;
  long b, t, dim;
};

template <class T> static INLINE void add_to(T *sums, const T *row, long n) {
  for (long c = 0; c < n; c++) sums[c] += row[c];
}

// Where the slopes of the weights of one branch lie; those that are summed row by row begin at 0.
template <class T> struct Slopes {
  T *gains, *shifts, *inward, *inward_bias, *outward, *outward_bias;
  Slopes(T *at, long dim, long width, long step)
      : gains(at), shifts(gains + dim), inward(shifts + dim), inward_bias(inward + dim * width), outward(inward_bias + width),
        outward_bias(outward + dim * step) {
    for (T *sums : {gains, shifts, outward_bias}) std::fill(sums, sums + dim, T(0));
    std::fill(inward_bias, inward_bias + width, T(0));
  }
};

// Rows in their standard form, and the stream that the branch will be added to. Where there is a gain, `x` and `y` may be the
// same.
template <class T>
static void enter(const Branch<T> &l, const T *x, T *normed, T *y, T *facts, long rows, long dim) {
  for (long row = 0; row < rows; row++, x += dim, y += dim, normed += dim, facts += 2) {
    if (l.gain) {
      if (l.centred)
        measure<T, true>(x, l.eps, facts[0], facts[1], dim);
      else
        measure<T, false>(x, l.eps, facts[0], facts[1], dim);
      scaled(x, l.gain, l.shift, facts[0], facts[1], normed, dim);
    }
    for (long c = 0; c < dim; c++) y[c] = (l.gain ? x[c] : T(0)) + (l.outward_bias ? l.outward_bias[c] : T(0));
  }
}

// The slopes of the stream, from those of the normed rows; `slope` and `dx` may be the same.
template <class T>
static void leave(const Branch<T> &l, const T *x, const T *facts, const T *pulled, const T *slope, T *dx, Slopes<T> &own, long rows,
                long dim) {
  for (long row = 0; row < rows; row++, x += dim, facts += 2, pulled += dim, slope += dim, dx += dim)
    if (l.centred)
      unscaled<T, true>(x, l.gain, facts[0], facts[1], pulled, slope, dx, own.gains, own.shifts, dim);
    else
      unscaled<T, false>(x, l.gain, facts[0], facts[1], pulled, slope, dx, own.gains, own.shifts, dim);
}
