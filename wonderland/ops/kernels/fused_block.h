// A residual block y = x + f(norm(x)) as Python describes it, and what attention and MLP blocks have in common.
#pragma once
#include "gemm.h"
#include "norms.h"

// Fields are eight bytes each, in the order of `ops/fused_block.py`. What is kept for the backward pass is null where none comes.
template <class T> struct FusedBlock {
  const T *gain, *shift, *inward, *inward_bias, *outward, *outward_bias, *table;
  const T *x;
  T *y, *projected, *mixed, *sums, *moments, *grads;
  double scale, eps;
  long attends, centred, width, at_once; // so many rows (MLP) or sequences (attention) are worked on at a time
  long activation;                       // MLP
  long heads, kv, d, causal;             // attention
  long rotated, half;                    // rotary features of a head, and whether the members of a pair are half of them apart

  // How many numbers the gradients of all weights are: gain, shift, inward and its bias, outward and its bias, in this order.
  long grads_size(long dim) const { return 3 * dim + dim * width + width + dim * (attends ? heads * d : width); }
};

static_assert(sizeof(FusedBlock<float>) == 27 * 8, "ops/fused_block.py writes 27 fields");

// The residual stream: `b` sequences of `t` rows of `dim` numbers.
template <class T> struct Stream {
  Gemm<T> gemm;
  long b, t, dim;
};

template <class T> static INLINE void add_to(T *sums, const T *row, long n) {
  for (long c = 0; c < n; c++) sums[c] += row[c];
}

// Where the gradients of the weights lie; those that are summed row by row begin at 0.
template <class T> struct WeightGrads {
  T *gains, *shifts, *inward, *inward_bias, *outward, *outward_bias;
  WeightGrads(T *at, long dim, long width, long mixed)
      : gains(at), shifts(gains + dim), inward(shifts + dim), inward_bias(inward + dim * width), outward(inward_bias + width),
        outward_bias(outward + dim * mixed) {
    for (T *sums : {gains, shifts, outward_bias}) std::fill(sums, sums + dim, T(0));
    std::fill(inward_bias, inward_bias + width, T(0));
  }
};

// Normalised rows, and y = x + the bias of the last linear layer, to which the product is added later.
template <class T>
static void norm_forward(const FusedBlock<T> &block, const T *x, T *normed, T *y, T *moments, long rows, long dim) {
  for (long row = 0; row < rows; row++, x += dim, y += dim, normed += dim, moments += 2) {
    if (block.centred)
      measure<T, true>(x, block.eps, moments[0], moments[1], dim);
    else
      measure<T, false>(x, block.eps, moments[0], moments[1], dim);
    scaled(x, block.gain, block.shift, moments[0], moments[1], normed, dim);
    for (long c = 0; c < dim; c++) y[c] = x[c] + (block.outward_bias ? block.outward_bias[c] : T(0));
  }
}

// The gradient of x from those of the normalised rows and of y.
template <class T>
static void norm_backward(const FusedBlock<T> &block, const T *x, const T *moments, const T *dnormed, const T *dy, T *dx,
                          WeightGrads<T> &own, long rows, long dim) {
  for (long row = 0; row < rows; row++, x += dim, moments += 2, dnormed += dim, dy += dim, dx += dim)
    if (block.centred)
      norm_grad<T, true>(x, block.gain, moments[0], moments[1], dnormed, dy, dx, own.gains, own.shifts, dim);
    else
      norm_grad<T, false>(x, block.gain, moments[0], moments[1], dnormed, dy, dx, own.gains, own.shifts, dim);
}
