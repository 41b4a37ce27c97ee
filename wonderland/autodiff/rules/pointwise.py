"""Rules of elementwise operators.

At kinks the conventions are those of PyTorch: relu, abs and hardtanh have derivative 0, clamp has derivative 1 at its bounds,
and maximum or minimum of two equal numbers has derivative 1/2 for each.
"""

import math

import torch

from wonderland.autodiff.rules.table import conj, linear, no_derivative, pointwise, rule, total

ROOT_PI = math.sqrt(math.pi)

pointwise("exp", self=lambda n: n.y)
pointwise("exp2", self=lambda n: n.y * math.log(2))
pointwise("expm1", self=lambda n: n.y + 1)
pointwise("log", self=lambda n: n.self.reciprocal())
pointwise("log2", self=lambda n: (n.self * math.log(2)).reciprocal())
pointwise("log10", self=lambda n: (n.self * math.log(10)).reciprocal())
pointwise("log1p", self=lambda n: (n.self + 1).reciprocal())
pointwise("sin", self=lambda n: n.self.cos())
pointwise("cos", self=lambda n: -n.self.sin())
pointwise("tan", self=lambda n: 1 + n.y.square())
pointwise("asin", self=lambda n: (1 - n.self.square()).rsqrt())
pointwise("acos", self=lambda n: -(1 - n.self.square()).rsqrt())
pointwise("atan", self=lambda n: (1 + n.self.square()).reciprocal())
pointwise("sinh", self=lambda n: n.self.cosh())
pointwise("cosh", self=lambda n: n.self.sinh())
pointwise("asinh", self=lambda n: (1 + n.self.square()).rsqrt())
pointwise("acosh", self=lambda n: (n.self.square() - 1).rsqrt())
pointwise("atanh", self=lambda n: (1 - n.self.square()).reciprocal())
pointwise("sqrt", self=lambda n: 0.5 / n.y)
pointwise("rsqrt", self=lambda n: -0.5 * n.y.pow(3))
pointwise("reciprocal", self=lambda n: -n.y.square())
pointwise("square", self=lambda n: 2 * n.self)
pointwise("log_sigmoid", self=lambda n: torch.sigmoid(-n.self))
pointwise("erf", self=lambda n: 2 / ROOT_PI * torch.exp(-n.self.square()))
pointwise("erfc", self=lambda n: -2 / ROOT_PI * torch.exp(-n.self.square()))
pointwise("erfinv", self=lambda n: ROOT_PI / 2 * torch.exp(n.y.square()))
pointwise("sinc", self=lambda n: _sinc(n.self))
pointwise("lgamma", self=lambda n: torch.digamma(n.self))
pointwise("digamma", self=lambda n: torch.special.polygamma(1, n.self))
pointwise("polygamma", self=lambda n: torch.special.polygamma(n.n + 1, n.self))
pointwise("i0 special_i0", self=lambda n: torch.special.i1(n.self))
pointwise("special_i0e", self=lambda n: torch.special.i1e(n.self) - n.self.sgn() * n.y)
pointwise("special_i1", self=lambda n: _i1_derivative(n.y, n.self, torch.special.i0(n.self)))
pointwise("special_i1e", self=lambda n: _i1_derivative(n.y, n.self, torch.special.i0e(n.self)) - n.self.sgn() * n.y)
pointwise("special_ndtri", self=lambda n: math.sqrt(2 * math.pi) * torch.exp(0.5 * n.y.square()))
pointwise("special_log_ndtr", self=lambda n: torch.exp(-0.5 * n.self.square() - n.y) / math.sqrt(2 * math.pi))
pointwise("special_entr", self=lambda n: -n.self.log() - 1)
pointwise("special_erfcx", self=lambda n: 2 * n.self * n.y - 2 / ROOT_PI)
pointwise("softplus", self=lambda n: _softplus(n))
pointwise(
    "leaky_relu",
    self=lambda n: torch.where(n.self > 0, torch.ones_like(n.self), torch.full_like(n.self, n.negative_slope)),
)
pointwise("elu", self=lambda n: _elu(n))
pointwise("hardtanh", self=lambda n: ((n.self > n.min_val) & (n.self < n.max_val)).to(n.self.dtype))
pointwise("hardsigmoid", self=lambda n: ((n.self > -3) & (n.self < 3)).to(n.self.dtype) / 6)
pointwise("hardswish", self=lambda n: _hardswish(n.self))
pointwise("threshold", self=lambda n: (n.self > n.threshold).to(n.self.dtype))
pointwise("mish", self=lambda n: _mish(n.self))
pointwise(
    "celu", self=lambda n: torch.where(n.self > 0, torch.ones_like(n.self), torch.exp(n.self.clamp(max=0) / n.alpha))
)
pointwise("logit", self=lambda n: _logit(n))
pointwise("nan_to_num", self=lambda n: n.self.isfinite().to(n.self.dtype))
pointwise("frac", self=lambda n: torch.ones_like(n.self))
pointwise("clamp", self=lambda n: _clamp_by_self(n), min=lambda n: _clamp_by_min(n), max=lambda n: _clamp_by_max(n))
pointwise("clamp_min", self=lambda n: (n.self >= n.min).to(n.y.dtype), min=lambda n: (n.self < n.min).to(n.y.dtype))
pointwise("clamp_max", self=lambda n: (n.self <= n.max).to(n.y.dtype), max=lambda n: (n.self > n.max).to(n.y.dtype))
pointwise("atan2", self=lambda n: n.other / _squared_radius(n), other=lambda n: -n.self / _squared_radius(n))
pointwise("hypot", self=lambda n: n.self / n.y, other=lambda n: n.other / n.y)
pointwise("copysign", self=lambda n: _copysign(n), other=lambda n: torch.zeros_like(n.y))
pointwise(
    "fmod", self=lambda n: torch.ones_like(n.y), other=lambda n: -torch.div(n.self, n.other, rounding_mode="trunc")
)
pointwise(
    "remainder", self=lambda n: torch.ones_like(n.y), other=lambda n: -torch.div(n.self, n.other, rounding_mode="floor")
)
pointwise("xlogy special_xlogy", self=lambda n: _log_or_zero(n.self, n.other), other=lambda n: n.self / n.other)
pointwise(
    "special_xlog1py",
    self=lambda n: _log_or_zero(n.self, n.other + 1),
    other=lambda n: n.self / (n.other + 1),
)
pointwise("logaddexp", self=lambda n: torch.exp(n.self - n.y), other=lambda n: torch.exp(n.other - n.y))
pointwise("logaddexp2", self=lambda n: torch.exp2(n.self - n.y), other=lambda n: torch.exp2(n.other - n.y))
pointwise("special_zeta", other=lambda n: -n.self * torch.special.zeta(n.self + 1, n.other))
pointwise("igamma", other=lambda n: _gamma_density(n))
pointwise("igammac", other=lambda n: -_gamma_density(n))
pointwise("pow", self=lambda n: _pow_by_base(n), exponent=lambda n: _pow_by_exponent(n))
pointwise("maximum", self=lambda n: _winner(n, n.self > n.other), other=lambda n: _winner(n, n.self < n.other))
pointwise("minimum", self=lambda n: _winner(n, n.self < n.other), other=lambda n: _winner(n, n.self > n.other))
pointwise(
    "fmax",
    self=lambda n: _fmax_takes_first(n, n.self >= n.other),
    other=lambda n: 1 - _fmax_takes_first(n, n.self >= n.other),
)
pointwise(
    "fmin",
    self=lambda n: _fmax_takes_first(n, n.self <= n.other),
    other=lambda n: 1 - _fmax_takes_first(n, n.self <= n.other),
)
pointwise("mul", self=lambda n: n.other, other=lambda n: n.self)
pointwise("div.Tensor div.Scalar true_divide", self=lambda n: 1 / n.other, other=lambda n: -n.y / n.other)
pointwise("ldexp", self=lambda n: torch.exp2(n.other.to(n.y.dtype)), other=lambda n: n.y * math.log(2))
pointwise(
    "nextafter", self=lambda n: (n.self != n.other).to(n.y.dtype), other=lambda n: (n.self == n.other).to(n.y.dtype)
)
rule(
    "prims.frexp",
    self=lambda g, n: _mantissa(g[0], n),
    tangent=lambda t, n: [_mantissa(t["self"], n), None],
    nondifferentiable=(1,),
)

linear("neg", self=lambda g, n: -g)
linear("alias clone lift_fresh lift lift_fresh_copy contiguous", self=lambda g, n: g)
linear("add.Tensor", self=lambda g, n: g, other=lambda g, n: g * conj(n.alpha) if n.alpha != 1 else g)
linear("sub.Tensor", self=lambda g, n: g, other=lambda g, n: g * -conj(n.alpha))
linear("rsub.Tensor", self=lambda g, n: g * -conj(n.alpha), other=lambda g, n: g)
linear("_to_copy", self=lambda g, n: g.real if g.is_complex() and not n.self.is_complex() else g.to(n.self.dtype))
linear("conj _conj _conj_physical conj_physical resolve_conj", self=lambda g, n: conj(g))
linear("_neg_view", self=lambda g, n: -g)
linear("real", self=lambda g, n: g.to(n.self.dtype))
linear("imag", self=lambda g, n: g.to(n.self.dtype) * 1j)
linear("view_as_real", self=lambda g, n: torch.view_as_complex(g.contiguous()))
linear("view_as_complex", self=lambda g, n: torch.view_as_real(g.resolve_conj().contiguous()))
linear("complex", real=lambda g, n: g.real, imag=lambda g, n: g.imag)
linear(
    "where.self",
    self=lambda g, n: g.masked_fill(~n.condition.bool(), 0),
    other=lambda g, n: g.masked_fill(n.condition.bool(), 0),
)

rule("add.Scalar sub.Scalar", self=lambda g, n: g, tangent=lambda t, n: t["self"])
rule("rsub.Scalar", self=lambda g, n: g * -conj(n.alpha), tangent=lambda t, n: t["self"] * -n.alpha)
rule(
    "where.ScalarOther",
    self=lambda g, n: g.masked_fill(~n.condition.bool(), 0),
    tangent=lambda t, n: t["self"].masked_fill(~n.condition.bool(), 0),
)
rule(
    "where.ScalarSelf",
    other=lambda g, n: g.masked_fill(n.condition.bool(), 0),
    tangent=lambda t, n: t["other"].masked_fill(n.condition.bool(), 0),
)
rule("abs", self=lambda g, n: g * n.self.sgn(), tangent=lambda t, n: _real(t["self"] * conj(n.self.sgn())))
rule("angle", self=lambda g, n: _angle_cotangent(g, n.self), tangent=lambda t, n: _angle_tangent(t["self"], n.self))
rule("sgn", self=lambda g, n: _sgn_derivative(g, n), tangent=lambda t, n: _sgn_derivative(t["self"], n))
rule(
    "polar",
    abs=lambda g, n: _real(conj(g) * torch.polar(torch.ones_like(n.abs), n.angle)),
    angle=lambda g, n: _real(conj(g) * n.y * 1j),
)
rule(
    "addcmul",
    self=lambda g, n: g,
    tensor1=lambda g, n: g * conj(n.tensor2) * conj(n.value),
    tensor2=lambda g, n: g * conj(n.tensor1) * conj(n.value),
    tangent=lambda t, n: total(
        (
            t.get("self"),
            _multiplied(t.get("tensor1"), n.tensor2 * n.value),
            _multiplied(t.get("tensor2"), n.tensor1 * n.value),
        )
    ),
)
rule(
    "addcdiv",
    self=lambda g, n: g,
    tensor1=lambda g, n: g * conj(n.value / n.tensor2),
    tensor2=lambda g, n: -g * conj(n.value * n.tensor1 / n.tensor2.square()),
    tangent=lambda t, n: total(
        (
            t.get("self"),
            _multiplied(t.get("tensor1"), n.value / n.tensor2),
            _multiplied(t.get("tensor2"), -n.value * n.tensor1 / n.tensor2.square()),
        )
    ),
)
rule(
    "lerp.Tensor lerp.Scalar",
    self=lambda g, n: g * conj(1 - n.weight),
    end=lambda g, n: g * conj(n.weight),
    weight=lambda g, n: g * conj(n.end - n.self),
    tangent=lambda t, n: total(
        (
            _multiplied(t.get("self"), 1 - n.weight),
            _multiplied(t.get("end"), n.weight),
            _multiplied(t.get("weight"), n.end - n.self),
        )
    ),
)
rule(
    "gelu",
    self=lambda g, n: torch.ops.aten.gelu_backward(g, n.self, approximate=n.approximate),
    tangent=lambda t, n: torch.ops.aten.gelu_backward(t["self"], n.self, approximate=n.approximate),
)
rule(
    "_prelu_kernel",
    self=lambda g, n: torch.where(n.self > 0, g, n.weight * g),
    weight=lambda g, n: torch.where(n.self > 0, torch.zeros_like(g), n.self * g),
)
rule(
    "floor_divide div.Tensor_mode div.Scalar_mode",
    self=lambda g, n: _rounding_cotangent(g, n, 1 / n.other),
    other=lambda g, n: _rounding_cotangent(g, n, -n.y / n.other),
    tangent=lambda t, n: _rounding_tangent(t, n),
)
rule(
    "masked_fill.Scalar",
    self=lambda g, n: g.masked_fill(n.mask, 0),
    tangent=lambda t, n: t["self"].masked_fill(n.mask, 0),
)
linear(
    "masked_fill.Tensor", self=lambda g, n: g.masked_fill(n.mask, 0), value=lambda g, n: g.masked_fill(~n.mask, 0).sum()
)

no_derivative(
    "detach floor ceil round trunc sign signbit eq ne lt le gt ge isnan isinf isfinite isneginf isposinf logical_and logical_or "
    "logical_xor logical_not bitwise_and bitwise_or bitwise_xor bitwise_not bitwise_left_shift bitwise_right_shift "
    "__lshift__ __rshift__ argmax argmin argsort any all equal nonzero count_nonzero bucketize searchsorted "
    "zeros_like ones_like full_like empty_like rand_like randn_like randint_like new_zeros new_ones new_full new_empty "
    "new_empty_strided empty_strided zeros ones full empty eye arange linspace logspace scalar_tensor rand randn randint randperm "
    "bernoulli_ normal_ uniform_ exponential_ geometric_ cauchy_ log_normal_ random_ "
    "bernoulli heaviside gcd lcm histc bincount multinomial tril_indices triu_indices isin is_nonzero "
    "_local_scalar_dense sym_size fill.Scalar zero frexp_exponent poisson one_hot histogram unique_consecutive "
    "_unique2 unique_dim normal normal_functional uniform random log_normal exponential cauchy geometric allclose "
    "_is_all_true _is_any_true "
    "native_dropout_mask nonzero_static asarray full.names"
)


def _mantissa(t, n):
    return None if t is None else t * torch.exp2(-n.y[1].to(t.dtype))


def _sinc(x):
    angle = math.pi * x
    safe = torch.where(x == 0, torch.ones_like(angle), angle)
    return torch.where(x == 0, torch.zeros_like(angle), math.pi * (safe * safe.cos() - safe.sin()) / safe.square())


def _i1_derivative(y, x, i0):
    """I1' = I0 - I1 / x, which is 1/2 at 0."""
    nonzero = x.abs() > torch.finfo(x.dtype).eps
    safe = torch.where(nonzero, x, torch.full_like(x, torch.finfo(x.dtype).eps))
    return torch.where(nonzero, i0 - y / safe, torch.full_like(x, 0.5))


def _softplus(n):
    z = n.self * n.beta
    return torch.where(z > n.threshold, torch.ones_like(z), torch.sigmoid(z))


def _elu(n):
    below = n.scale * n.input_scale * n.alpha * torch.exp(n.self.clamp(max=0) * n.input_scale)
    return torch.where(n.self > 0, torch.full_like(n.self, n.scale), below)


def _hardswish(x):
    derivative = torch.where(x < 3, (2 * x + 3) / 6, torch.ones_like(x))
    return torch.where(x > -3, derivative, torch.zeros_like(x))


def _mish(x):
    soft = torch.nn.functional.softplus(x).tanh()
    return soft + x * torch.sigmoid(x) * (1 - soft.square())


def _logit(n):
    x, eps = n.self, n.eps
    if eps is None or eps < 0:
        return 1 / (x * (1 - x))
    inside = (x >= eps) & (x <= 1 - eps)
    safe = torch.where(inside, x, torch.full_like(x, 0.5))
    return torch.where(inside, 1 / (safe * (1 - safe)), torch.zeros_like(x))


def _clamp_by_self(n):
    ok = torch.ones_like(n.self, dtype=torch.bool)
    if n.min is not None:
        ok = ok & (n.self >= n.min)
    if n.max is not None:
        ok = ok & (n.self <= n.max)
    return ok.to(n.y.dtype)


def _clamp_by_min(n):
    ok = n.self < n.min
    return (ok if n.max is None else ok & (n.min < n.max)).to(n.y.dtype)


def _clamp_by_max(n):
    ok = n.self > n.max
    return (ok if n.min is None else ok | (n.max < n.min)).to(n.y.dtype)


def _squared_radius(n):
    return n.self.square() + n.other.square()


def _copysign(n):
    ratio = n.y / n.self
    return torch.where(n.self == 0, torch.zeros_like(ratio), ratio)


def _log_or_zero(x, y):
    x = x if isinstance(x, torch.Tensor) else torch.as_tensor(x, dtype=y.dtype)
    y = y if isinstance(y, torch.Tensor) else torch.as_tensor(y, dtype=x.dtype)
    return torch.where((x == 0) & (y <= 0), torch.zeros_like(x * y), y.log())


def _gamma_density(n):
    return torch.exp((n.self - 1) * n.other.log() - n.other - torch.lgamma(n.self))


def _pow_by_base(n):
    x, p = n.self, n.exponent
    if not isinstance(p, torch.Tensor):
        if p == 0:
            return torch.zeros_like(x)
        return 2 * x if p == 2 else p * x.pow(p - 1)
    x = x if isinstance(x, torch.Tensor) else torch.as_tensor(x, dtype=p.dtype)
    derivative = p * x.pow(p - 1)
    return torch.where(p == 0, torch.zeros_like(derivative), derivative)


def _pow_by_exponent(n):
    x = n.self if isinstance(n.self, torch.Tensor) else torch.as_tensor(n.self, dtype=n.y.dtype)
    derivative = n.y * x.log()
    p = n.exponent
    at_zero = (x == 0) & ((p.real if p.is_complex() else p) >= 0)
    return torch.where(at_zero, torch.zeros_like(derivative), derivative)


def _winner(n, wins):
    """1 where a number wins, 1/2 where both are equal."""
    return wins.to(n.y.dtype) + torch.where(n.self == n.other, 0.5, 0.0).to(n.y.dtype)


def _fmax_takes_first(n, wins):
    """1 where fmax or fmin takes the first number: where it wins, or the second is NaN."""
    return (wins | n.other.isnan()).to(n.y.dtype)


def _real(x):
    return x.real if x.is_complex() else x


def _multiplied(a, b):
    return None if a is None else a * b


def _angle_cotangent(g, x):
    if not x.is_complex():
        return torch.zeros_like(x)
    size = x.abs().square()
    safe = torch.where(size == 0, torch.ones_like(size), size)
    return torch.where(size == 0, torch.zeros_like(x), g * torch.complex(-x.imag / safe, x.real / safe))


def _angle_tangent(t, x):
    if not x.is_complex():
        return torch.zeros_like(x)
    size = x.abs().square()
    return (t.imag * x.real - t.real * x.imag) / size


def _sgn_derivative(g, n):
    if not n.self.is_complex():
        return torch.zeros_like(g)
    size = n.self.abs()
    result = (g - (conj(n.y) * g).real * n.y) / torch.where(size == 0, torch.ones_like(size), size)
    return torch.where(size == 0, torch.zeros_like(result), result)


def _rounding_cotangent(g, n, derivative):
    mode = getattr(n, "rounding_mode", "floor")
    return g * derivative if mode is None else torch.zeros_like(g)


def _rounding_tangent(t, n):
    if getattr(n, "rounding_mode", "floor") is not None:
        return torch.zeros_like(n.y)
    return total((_multiplied(t.get("self"), 1 / n.other), _multiplied(t.get("other"), -n.y / n.other)))
