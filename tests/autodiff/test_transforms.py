"""Transforms agree with torch.func, nest in any order, and have clear error messages."""

import re

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from wonderland import autodiff
from wonderland.core import WonderlandError

# torch.func.jvp, the oracle, scripts its own formulas when it is first called.
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")
D = torch.float64


def loss(x, w):
    return torch.tanh(F.layer_norm(x @ w, (4,))).softmax(-1)[:, 0].log().sum()


@pytest.fixture
def given():
    torch.manual_seed(0)
    return torch.randn(3, 5, dtype=D), torch.randn(5, 4, dtype=D)


def test_gradients_by_one_argument_and_by_several(given):
    for argnums in (0, 1, (0, 1), (1,), -1):
        ours, theirs = autodiff.grad(loss, argnums)(*given), torch.func.grad(loss, argnums)(*given)
        torch.testing.assert_close(ours, theirs)
    value, gradient = autodiff.value_and_grad(loss)(*given)
    torch.testing.assert_close(value, loss(*given))
    torch.testing.assert_close(gradient, torch.func.grad(loss)(*given))


def test_vjp_and_jvp_have_the_signatures_of_torch(given):
    out, pullback = autodiff.vjp(torch.matmul, *given)
    g = torch.randn_like(out)
    torch.testing.assert_close(pullback(g), torch.func.vjp(torch.matmul, *given)[1](g))
    moves = tuple(torch.randn_like(one) for one in given)
    torch.testing.assert_close(autodiff.jvp(loss, given, moves), torch.func.jvp(loss, given, moves))
    out, gradient = autodiff.linearize(loss, *given)
    torch.testing.assert_close(gradient(*moves), torch.func.jvp(loss, given, moves)[1])


def test_directional_derivatives_are_the_gradient_times_the_direction(given):
    x, w = given
    v = torch.randn_like(w)

    def f(w):
        return loss(x, w)

    torch.testing.assert_close(autodiff.directional(f, w, v), (torch.func.grad(f)(w) * v).sum())
    torch.testing.assert_close(autodiff.directional(f, w, 3 * v), 3 * autodiff.directional(f, w, v))
    # Of all unit directions the one of the gradient has the largest derivative: its length.
    steepest = torch.func.grad(f)(w)
    torch.testing.assert_close(autodiff.directional(f, w, steepest / steepest.norm()), steepest.norm())


def test_a_function_of_many_outputs_takes_a_cotangent_for_each(given):
    """D2L 2.5.2: the backward pass of many numbers is that of their weighted sum, with the cotangent as the weights."""

    def f(x, w):
        return {"product": torch.tanh(x @ w), "rows": x.square().sum(1)}

    x, w = given
    out, pullback = autodiff.vjp(f, x, w)
    cotangent = {name: torch.randn_like(value) for name, value in out.items()}
    leaves = [value.clone().requires_grad_() for value in given]
    total = sum((cotangent[name] * value).sum() for name, value in f(*leaves).items())
    torch.testing.assert_close(pullback(cotangent), torch.autograd.grad(total, leaves))
    for name in out:  # a cotangent of ones for one output and of zeros for the rest is the gradient of its sum
        ones = {key: torch.full_like(value, float(key == name)) for key, value in out.items()}
        torch.testing.assert_close(pullback(ones), torch.func.grad(lambda *a: f(*a)[name].sum(), (0, 1))(*given))  # noqa: B023


@pytest.mark.parametrize("mode", ["forward", "reverse", "auto"])
def test_jacobians_in_both_modes(given, mode):
    def f(x, w):
        return (x @ w).sin(), x.square().sum(1)

    for argnums in (0, (0, 1)):
        torch.testing.assert_close(
            autodiff.jacobian(f, argnums, mode=mode)(*given), torch.func.jacrev(f, argnums)(*given)
        )


def test_hessians_and_products_with_them(given):
    x, w = given
    torch.testing.assert_close(autodiff.hessian(loss, 1)(x, w), torch.func.hessian(loss, 1)(x, w))
    v = torch.randn_like(w)
    value, product = autodiff.hvp(lambda w: loss(x, w), (w,), (v,))
    torch.testing.assert_close(value, loss(x, w))
    torch.testing.assert_close(product, torch.tensordot(torch.func.hessian(loss, 1)(x, w), v, 2))


NESTS = {
    "grad of grad": lambda f, grad, jvp, rev: grad(grad(f)),
    "three deep": lambda f, grad, jvp, rev: grad(grad(grad(f))),
    "forward of reverse": lambda f, grad, jvp, rev: lambda x: jvp(grad(f), (x,), (torch.ones_like(x),))[1],
    "reverse of forward": lambda f, grad, jvp, rev: grad(lambda x: jvp(f, (x,), (torch.ones_like(x),))[1]),
    "forward of forward": lambda f, grad, jvp, rev: (
        lambda x: jvp(lambda y: jvp(f, (y,), (y * 2,))[1], (x,), (torch.ones_like(x),))[1]
    ),
    "through a jacobian": lambda f, grad, jvp, rev: grad(lambda x: rev(lambda y: f(y) * y)(x) ** 2),
    "inside the function": lambda f, grad, jvp, rev: grad(lambda x: x * grad(lambda y: f(x * y))(x)),
}


@pytest.mark.parametrize("name", NESTS)
def test_transforms_nest_in_any_order(name):
    def f(x):
        return (x.exp() * x).sin() + F.softplus(x) ** 3

    x = torch.tensor(0.7, dtype=D)
    ours = NESTS[name](f, autodiff.grad, autodiff.jvp, autodiff.jacobian)(x)
    theirs = NESTS[name](f, torch.func.grad, torch.func.jvp, torch.func.jacrev)(x)
    torch.testing.assert_close(ours, theirs)


def test_parameters_come_as_any_nesting():
    def f(tree, x):
        return ((x @ tree["w"][0] + tree["b"]) ** 2).sum() + tree["w"][1].sum()

    tree = {"w": [torch.randn(3, 2, dtype=D), torch.randn(2, dtype=D)], "b": torch.randn(2, dtype=D)}
    x = torch.randn(4, 3, dtype=D)
    torch.testing.assert_close(autodiff.grad(f)(tree, x), torch.func.grad(f)(tree, x))


def test_python_decides_by_numbers_and_writes_in_place():
    def f(x):
        y = torch.zeros(3, dtype=x.dtype)
        y[0] = x[0] * 2
        y[1:].add_(x[1:] ** 2)
        y.view(3, 1).mul_(x[:, None])
        if y[0] > 0:
            y = y * 2
        for _ in range(int(x[1].item())):
            y = y + x.sin()
        return (y**2).sum()

    x = torch.tensor([1.0, 2.0, 3.0], dtype=D)
    torch.testing.assert_close(autodiff.grad(f)(x), torch.func.grad(f)(x))
    torch.testing.assert_close(autodiff.hessian(f)(x), torch.func.hessian(f)(x))


def test_what_is_stopped_has_no_derivative():
    x = torch.tensor(2.0, dtype=D)
    assert autodiff.grad(lambda x: x * autodiff.stop_gradient(x) * x.detach())(x) == 4

    def f(x):
        with torch.no_grad():
            scale = x * 3
        return x * scale

    assert autodiff.grad(f)(x) == 6


@pytest.mark.parametrize(
    ("f", "at", "gradient"),
    [
        (torch.relu, 0.0, 0.0),
        (torch.abs, 0.0, 0.0),
        (lambda x: x.clamp(0, 1), 0.0, 1.0),
        (lambda x: x.clamp(0, 1), 1.0, 1.0),
        (lambda x: torch.maximum(x, torch.zeros_like(x)), 0.0, 0.5),
        (lambda x: torch.minimum(x, torch.zeros_like(x)), 0.0, 0.5),
        (F.hardtanh, 1.0, 0.0),
        (F.leaky_relu, 0.0, 0.01),
        (lambda x: x.norm(), 0.0, 0.0),
        (lambda x: torch.stack([x, x]).amax(), 3.0, 1.0),
        (torch.sign, 0.0, 0.0),
        (torch.round, 0.5, 0.0),
    ],
)
def test_conventions_at_kinks_are_those_of_torch(f, at, gradient):
    x = torch.tensor(at, dtype=D)
    assert autodiff.grad(f)(x) == gradient
    torch.testing.assert_close(autodiff.jvp(f, (x,), (torch.ones_like(x),))[1], torch.tensor(gradient, dtype=D))
    leaf = x.clone().requires_grad_()
    assert torch.autograd.grad(f(leaf), leaf)[0] == gradient


def test_complex_numbers_follow_the_convention_of_torch():
    z = torch.randn(4, dtype=torch.complex128)

    def f(z):
        return ((z * z.conj() + z.exp()).abs() + torch.fft.fft(z).real).sum()

    torch.testing.assert_close(autodiff.grad(f)(z), torch.func.grad(f)(z))
    message = "grad needs a function that returns a real number, and sum returned torch.complex128."
    with pytest.raises(WonderlandError, match=re.escape(message)):
        autodiff.grad(torch.sum)(z)


def f_numpy(x):
    return torch.from_numpy(x.numpy() * 2).sum()


def f_writes(x):
    x.add_(1)
    return x.sum()


def f_list(x):
    return [1, x.sum()]


BAD = [
    (
        lambda: autodiff.grad(f_numpy)(torch.ones(2)),
        "A tensor leaves the program through numpy()",
    ),
    (
        lambda: autodiff.grad(f_writes)(torch.ones(2)),
        "The program writes into one of its inputs (add_,",
    ),
    (
        lambda: autodiff.vjp(f_list, torch.ones(2)),
        "The outputs of f_list must be tensors, not int: wrap numbers with torch.tensor().",
    ),
    (
        lambda: autodiff.grad(torch.sum)(torch.arange(3)),
        "The primals of vjp include torch.int64, which has no derivatives: "
        "convert with .to(torch.float32), or leave it out of argnums.",
    ),
    (
        lambda: autodiff.grad(torch.sin)(torch.ones(2)),
        "grad needs a function that returns a scalar, and sin returned a tensor (2,): take .sum(), or use jacobian.",
    ),
    (
        lambda: autodiff.grad(torch.sum, 3)(torch.ones(2)),
        "argnums names argument 3, and the function was called with 1.",
    ),
    (
        lambda: autodiff.grad(lambda x: x.sum())(2.0),
        "The primals of vjp must be tensors, not float: wrap numbers with torch.tensor().",
    ),
    (
        lambda: autodiff.jvp(torch.sin, torch.ones(2), torch.ones(2)),
        "jvp takes a tuple of primals and a tuple of tangents: jvp(f, (x,), (v,)).",
    ),
    (
        lambda: autodiff.jvp(torch.sin, (torch.ones(2),), (torch.ones(3),)),
        "A tangent has shape (3,) where the primal has (2,).",
    ),
    (
        lambda: autodiff.vjp(torch.sin, torch.ones(2))[1](torch.ones(3)),
        "A cotangent has shape (3,) where the output has (2,).",
    ),
    (
        lambda: autodiff.jacobian(torch.sin, mode="sideways"),
        "The mode of jacobian is 'forward', 'reverse' or 'auto', not 'sideways'.",
    ),
]


@pytest.mark.parametrize(("run", "message"), BAD, ids=[message[:40] for _, message in BAD])
def test_what_cannot_be_done_is_told(run, message):
    with pytest.raises(WonderlandError, match=re.escape(message)):
        run()


def test_an_input_is_left_as_it_was_when_writing_to_it_is_refused():
    x = torch.ones(2)
    with pytest.raises(WonderlandError):
        autodiff.grad(f_writes)(x)
    assert x.tolist() == [1, 1]


def test_shapes_that_depend_on_numbers_work():
    x = torch.tensor([1.0, -2.0, 3.0], dtype=D)

    def f(x):
        return (x[x > 0] ** 3).sum() + x[torch.nonzero(x < 0)[:, 0]].sin().sum()

    torch.testing.assert_close(autodiff.grad(f)(x), torch.autograd.functional.jacobian(f, x))


def test_a_primitive_without_a_rule_is_named_and_how_to_add_one():
    x = torch.tensor([2.0], dtype=D)
    message = (
        "autodiff has no reverse rule for aten.special_bessel_j0.default. Add one: "
        'autodiff.rule("special_bessel_j0", self=lambda g, n: ...)'
    )
    with pytest.raises(WonderlandError, match=re.escape(message)):
        autodiff.grad(lambda x: torch.special.bessel_j0(x).sum())(x)


def test_modules_are_functions_of_their_parameters():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 4), nn.Tanh()).double()
    net[2].weight = net[0].weight if net[0].weight.shape == net[2].weight.shape else net[2].weight
    x = torch.randn(5, 3, dtype=D)
    gradients = autodiff.grad(lambda own: autodiff.call(net, own, x).square().sum())(autodiff.parameters(net))
    net(x).square().sum().backward()
    for name, value in net.named_parameters():
        torch.testing.assert_close(gradients[name], value.grad)
    with pytest.raises(WonderlandError, match=re.escape("Sequential has no parameter 'nothing'.")):
        autodiff.call(net, {"nothing": x}, x)


def test_tied_weights_get_the_sum_of_both_uses():
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)
            self.second.weight = self.first.weight

        def forward(self, x):
            return self.second(torch.tanh(self.first(x)))

    net, x = Tied().double(), torch.randn(2, 3, dtype=D)
    gradients = autodiff.grad(lambda own: autodiff.call(net, own, x).sum())(autodiff.parameters(net))
    net(x).sum().backward()
    assert list(gradients) == ["first.weight"]
    torch.testing.assert_close(gradients["first.weight"], net.first.weight.grad)
    assert isinstance(net.first.weight, nn.Parameter)


def test_auxiliary_results_come_along():
    def f(x):
        return x.square().sum(), {"mean": x.mean()}

    x = torch.tensor([1.0, 3.0])
    gradient, aux = autodiff.grad(f, has_aux=True)(x)
    assert gradient.tolist() == [2, 6]
    assert aux["mean"] == 2
    with pytest.raises(WonderlandError, match="With has_aux=True the function must return a pair"):
        autodiff.grad(torch.sum, has_aux=True)(x)
