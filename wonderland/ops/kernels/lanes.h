// Vectors of lanes and the functions on them that kernels share. Everything works for float and double.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>
#include <omp.h>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

#define INLINE inline __attribute__((always_inline))

#if defined(__AVX512F__)
constexpr int BYTES = 64;
#else
constexpr int BYTES = 32;
#endif

template <class T> struct Lanes;
template <> struct Lanes<float> {
  typedef float type __attribute__((vector_size(BYTES)));
  typedef int32_t bits __attribute__((vector_size(BYTES)));
  static constexpr int count = BYTES / 4;
};
template <> struct Lanes<double> {
  typedef double type __attribute__((vector_size(BYTES)));
  typedef int64_t bits __attribute__((vector_size(BYTES)));
  static constexpr int count = BYTES / 8;
};

template <class T> using V = typename Lanes<T>::type;

template <class T> static INLINE V<T> load(const T *p) {
  V<T> v;
  memcpy(&v, p, sizeof v);
  return v;
}
template <class T> static INLINE void store(T *p, V<T> v) { memcpy(p, &v, sizeof v); }
template <class T> static INLINE V<T> spread(T x) { return x - V<T>{}; }

// The first n lanes of memory, zero beyond; for the ragged end of a row of channels.
template <class T> static INLINE V<T> load_part(const T *p, int n) {
  V<T> v{};
  memcpy(&v, p, n * sizeof(T));
  return v;
}
template <class T> static INLINE void store_part(T *p, V<T> v, int n) { memcpy(p, &v, n * sizeof(T)); }
#if defined(__AVX512F__)
template <> INLINE V<float> load_part<float>(const float *p, int n) {
  return (V<float>)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p);
}
template <> INLINE V<double> load_part<double>(const double *p, int n) {
  return (V<double>)_mm512_maskz_loadu_pd((__mmask8)((1u << n) - 1), p);
}
template <> INLINE void store_part<float>(float *p, V<float> v, int n) {
  _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v);
}
template <> INLINE void store_part<double>(double *p, V<double> v, int n) {
  _mm512_mask_storeu_pd(p, (__mmask8)((1u << n) - 1), (__m512d)v);
}
#endif

// By halves: lane after lane would wait for each addition.
template <class T> static INLINE T sum(V<T> v) {
  T lanes[Lanes<T>::count];
  memcpy(lanes, &v, sizeof v);
  for (int half = Lanes<T>::count / 2; half > 0; half /= 2)
    for (int i = 0; i < half; i++) lanes[i] += lanes[i + half];
  return lanes[0];
}

// The largest lane; what is not a number may be passed over.
template <class T> static INLINE T highest(V<T> v) {
  T lanes[Lanes<T>::count];
  memcpy(lanes, &v, sizeof v);
  for (int half = Lanes<T>::count / 2; half > 0; half /= 2)
    for (int i = 0; i < half; i++) lanes[i] = lanes[i] > lanes[i + half] ? lanes[i] : lanes[i + half];
  return lanes[0];
}

#if defined(__AVX512F__)
template <> INLINE float sum<float>(V<float> v) { return _mm512_reduce_add_ps((__m512)v); }
template <> INLINE double sum<double>(V<double> v) { return _mm512_reduce_add_pd((__m512d)v); }
template <> INLINE float highest<float>(V<float> v) { return _mm512_reduce_max_ps((__m512)v); }
template <> INLINE double highest<double>(V<double> v) { return _mm512_reduce_max_pd((__m512d)v); }
#endif

// The first n lanes, and another value beyond; n may be anything.
template <class T> static INLINE V<T> first(V<T> v, long n, T beyond) {
  constexpr int W = Lanes<T>::count;
  if (n >= W) return v;
  typename Lanes<T>::bits lane;
#pragma GCC unroll 16
  for (int i = 0; i < W; i++) lane[i] = i;
  auto most = (typename Lanes<T>::bits){} + (decltype(lane[0] + 0))(n < 0 ? 0 : n);
  return lane < most ? v : spread(beyond);
}

// The sums of as many vectors as one has lanes, side by side: neighbours are folded into each other, a half at a time.
template <class T, int HALF = 1> static INLINE V<T> sums(V<T> *a) {
  constexpr int W = Lanes<T>::count;
#if defined(__GNUC__) && !defined(__clang__)
  if constexpr (HALF < W) {
    typename Lanes<T>::bits here, there;
#pragma GCC unroll 16
    for (int i = 0; i < W; i++) here[i] = i & HALF ? W + i : i, there[i] = i & HALF ? W + (i ^ HALF) : i ^ HALF;
#pragma GCC unroll 16
    for (int i = 0; i < W; i += 2 * HALF)
      a[i] = __builtin_shuffle(a[i], a[i + HALF], here) + __builtin_shuffle(a[i], a[i + HALF], there);
    return sums<T, 2 * HALF>(a);
  }
  return a[0];
#else
  T each[W];
  for (int i = 0; i < W; i++) each[i] = sum<T>(a[i]);
  return load(each);
#endif
}

// A square of as many vectors as one has lanes, mirrored at its diagonal.
template <class T, int HALF = 1> static INLINE void transpose(V<T> *a) {
  constexpr int W = Lanes<T>::count;
#if defined(__GNUC__) && !defined(__clang__)
  if constexpr (HALF < W) {
    typename Lanes<T>::bits low, high;
#pragma GCC unroll 16
    for (int i = 0; i < W; i++) low[i] = i & HALF ? W + i - HALF : i, high[i] = i & HALF ? W + i : i + HALF;
#pragma GCC unroll 16
    for (int i = 0; i < W; i++)
      if (!(i & HALF)) {
        V<T> first = __builtin_shuffle(a[i], a[i + HALF], low);
        a[i + HALF] = __builtin_shuffle(a[i], a[i + HALF], high), a[i] = first;
      }
    transpose<T, 2 * HALF>(a);
  }
#else
  T from[W][W];
  memcpy(from, a, sizeof from);
  for (int i = 0; i < W; i++)
    for (int k = 0; k < W; k++) a[i][k] = from[k][i];
#endif
}

// As the processor's own instructions have it: b where either is NaN.
template <class T> static INLINE V<T> vmax(V<T> a, V<T> b) { return a > b ? a : b; }
template <class T> static INLINE V<T> vmin(V<T> a, V<T> b) { return a < b ? a : b; }
#if defined(__AVX__) && !defined(__AVX512F__) && defined(__GNUC__) && !defined(__clang__)
template <> INLINE V<float> vmax<float>(V<float> a, V<float> b) { return __builtin_ia32_maxps256(a, b); }
template <> INLINE V<float> vmin<float>(V<float> a, V<float> b) { return __builtin_ia32_minps256(a, b); }
#endif

// e^x = 2^n e^r with |r| <= ln 2 / 2, a polynomial for e^r (relative error 2e-9 in float, 1e-17 in double), and n added to
// the exponent. The argument is clipped to where the result is a normal number; NaN stays NaN.
static INLINE V<float> vexp(V<float> x) {
  using I = Lanes<float>::bits;
  x = vmin<float>(spread<float>(88.37626f), vmax<float>(spread<float>(-87.33654f), x));
  const V<float> magic = spread<float>(12582912.0f); // 1.5 * 2^23: adding it rounds to a whole number, kept in the low bits
  V<float> shifted = x * 1.44269504f + magic, n = shifted - magic;
  V<float> r = x - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  V<float> p = r * 0.0013841918681f + 0.0083741902096f;
  p = p * r + 0.0416680427331f;
  p = p * r + 0.1666643108920f;
  p = p * r + 0.4999999398066f;
  p = p * r + 1.0000000320099f;
  p = p * r + 1.0f;
  I bits, whole;
  memcpy(&bits, &p, sizeof bits);
  memcpy(&whole, &shifted, sizeof whole);
  bits += whole << 23;
  memcpy(&p, &bits, sizeof p);
  return p;
}

static INLINE V<double> vexp(V<double> x) {
  using I = Lanes<double>::bits;
  x = vmin<double>(spread<double>(709.43613930310391), vmax<double>(spread<double>(-708.39641853226408), x));
  const V<double> magic = spread<double>(6755399441055744.0);
  V<double> shifted = x * 1.4426950408889634074 + magic, n = shifted - magic;
  V<double> r = x - n * 6.93145751953125e-1;
  r = r - n * 1.42860682030941723212e-6;
  V<double> p = spread<double>(1.0 / 6227020800.0);
  const double inverse[] = {1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
                            1.0 / 720,       1.0 / 120,      1.0 / 24,      1.0 / 6,      0.5,         1.0, 1.0};
  for (double c : inverse) p = p * r + c;
  I bits, whole;
  memcpy(&bits, &p, sizeof bits);
  memcpy(&whole, &shifted, sizeof whole);
  bits += whole << 52;
  memcpy(&p, &bits, sizeof p);
  return p;
}

// 1 / x for finite x; a division takes as long as all the rest of a sigmoid, an estimate and one step of Newton's a fifth.
template <class T> static INLINE V<T> reciprocal(V<T> x) { return T(1) / x; }
#if defined(__AVX512F__)
template <> INLINE V<float> reciprocal<float>(V<float> x) {
  V<float> guess = (V<float>)_mm512_rcp14_ps((__m512)x);
  return guess * (2.0f - x * guess);
}
#endif

template <class T> static INLINE V<T> vsigmoid(V<T> x) { return reciprocal<T>(T(1) + vexp(-x)); }

// 1 - 2 / (e^2x + 1); near 0 its first terms, where the difference would cancel.
template <class T> static INLINE V<T> vtanh(V<T> x) {
  V<T> far = T(1) - T(2) * reciprocal<T>(vexp(x + x) + T(1)), s = x * x;
  V<T> near = x * (T(1) + s * (T(-1) / 3 + s * (T(2) / 15 + s * (T(-17) / 315 + s * (T(62) / 2835)))));
  V<T> bound = spread<T>(sizeof(T) == 4 ? T(0.01) : T(1e-4));
  return s < bound ? near : far;
}

// log(1 + y) for y in [0, 1]
static INLINE V<float> vlog1p_unit(V<float> y) {
  V<float> p = spread<float>(0.00198669659f);
  const float c[] = {-0.0131878266f, 0.0410065737f, -0.0818804092f, 0.123779959f,  -0.160876230f,
                     0.198858203f,   -0.249864965f, 0.333324975f,   -0.499999795f, 0.999999999f};
  for (float k : c) p = p * y + k;
  return p * y;
}

static INLINE V<double> vlog1p_unit(V<double> y) {
  V<double> p = spread<double>(-0.0000160202167255381931);
  const double c[] = {0.000193307945534311456, -0.00110938096817003433, 0.00404780989346751202, -0.0106146963635855298,
                      0.0215110226533569742,   -0.0355305254014412454,  0.0500774239539170403,  -0.0628875467078314627,
                      0.0732901525553495438,   -0.0820716368043742897,  0.090555675155907331,   -0.0999212782176001683,
                      0.111097408964601933,    -0.124998177695139539,   0.142856963095673096,   -0.166666654036910924,
                      0.199999999403498146,    -0.249999999982648114,   0.333333333333064607,   -0.499999999999998339,
                      0.999999999999999998};
  for (double k : c) p = p * y + k;
  return p * y;
}

// Not inlined: its constants would push those of the loop around it out of the registers.
template <class T> static __attribute__((noinline)) V<T> vsoftplus(V<T> x) {
  V<T> up = x > V<T>{} ? x : V<T>{}, size = x > V<T>{} ? -x : x;
  return up + vlog1p_unit(vexp(size));
}

// The Gaussian distribution function and, in `density`, its derivative. In float by a polynomial in 1 / (1 + c |x|) times the
// density (error 3e-9, less than rounding); far to the left it keeps its relative accuracy.
static INLINE V<float> vnormal(V<float> x, V<float> &density) {
  V<float> size = vmin<float>(spread<float>(1e18f), x < V<float>{} ? -x : x);
  V<float> t = reciprocal<float>(1.0f + 0.247487373f * size), e = vexp(-0.5f * x * x);
  V<float> p = spread<float>(-0.19715598770f);
  const float c[] = {0.76825234759f, -0.67215498351f, 0.67530524635f, -0.0028488321577f, 0.23401527020f, 0.19458693528f};
  for (float k : c) p = p * t + k;
  density = 0.39894228040f * e;
  V<float> tail = 0.5f * p * t * e;
  return x > V<float>{} ? 1.0f - tail : x == x ? tail : x;
}

static INLINE V<double> vnormal(V<double> x, V<double> &density) {
  density = 0.39894228040143267794 * vexp(-0.5 * x * x);
  V<double> found;
  for (int k = 0; k < Lanes<double>::count; k++) found[k] = 0.5 * std::erfc(-x[k] * 0.70710678118654752440);
  return found;
}

// The first m lanes, m being all of them except at the ragged end of a row.
template <class T> static INLINE V<T> get(const T *p, int m) {
  return m >= Lanes<T>::count ? load(p) : load_part(p, m);
}
template <class T> static INLINE void put(T *p, V<T> v, int m) {
  if (m >= Lanes<T>::count)
    store(p, v);
  else
    store_part(p, v, m);
}
