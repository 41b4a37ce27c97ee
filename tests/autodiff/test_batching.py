"""vmap in and around the transforms, against torch.func."""

import re

import pytest
import torch
from torch import func, nn

from wonderland import autodiff
from wonderland.core import WonderlandError
from wonderland.ops.rms_norm import rms_norm

D = torch.float64
# torch.func.jvp compiles its decompositions with torch.jit at the first use.
pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.*is deprecated:DeprecationWarning")


def loss(w, x, y):
    return (torch.tanh(x @ w) - y).square().sum()


def setting():
    torch.manual_seed(0)
    return torch.randn(3, 2, dtype=D), torch.randn(5, 3, dtype=D), torch.randn(5, 2, dtype=D)


@pytest.mark.parametrize("vmap", [autodiff.vmap, torch.vmap], ids=["ours", "torch"])
@pytest.mark.parametrize("name", ["grad", "value_and_grad", "jacobian", "hessian"])
def test_transforms_for_each_example(vmap, name):
    w, x, y = setting()
    theirs = {
        "grad": func.grad, "value_and_grad": lambda f: lambda *a: func.grad_and_value(f)(*a)[::-1],
        "jacobian": func.jacrev, "hessian": func.hessian,
    }[name]  # fmt: skip
    dims = (None, 0, 0)
    ours = vmap(getattr(autodiff, name)(loss), dims)(w, x, y)
    torch.testing.assert_close(ours, torch.vmap(theirs(loss), dims)(w, x, y))


def test_products_for_each_example():
    w, x, y = setting()
    v = torch.randn_like(x)
    f = lambda x: torch.sin(x @ w)  # noqa: E731
    ours = autodiff.vmap(lambda x, v: autodiff.jvp(f, (x,), (v,)))(x, v)
    torch.testing.assert_close(ours, torch.vmap(lambda x, v: func.jvp(f, (x,), (v,)))(x, v))
    pulled = autodiff.vmap(lambda x, y: autodiff.vjp(f, x)[1](y))(x, y)
    torch.testing.assert_close(pulled, torch.vmap(lambda x, y: func.vjp(f, x)[1](y))(x, y))
    linear = autodiff.vmap(lambda x, v: autodiff.linearize(f, x)[1](v))(x, v)
    torch.testing.assert_close(linear, ours[1])
    curved = autodiff.vmap(lambda x, v: autodiff.hvp(lambda x: f(x).sum(), (x,), (v,))[1])(x, v)
    expected = torch.vmap(lambda x, v: func.hessian(lambda x: f(x).sum())(x) @ v)(x, v)
    torch.testing.assert_close(curved, expected)


def test_derivatives_of_a_batched_function():
    w, x, y = setting()
    each = lambda w: autodiff.vmap(loss, (None, 0, 0))(w, x, y).square().sum()  # noqa: E731
    torch.testing.assert_close(autodiff.grad(each)(w), func.grad(each)(w))
    torch.testing.assert_close(autodiff.hessian(each)(w), func.hessian(each)(w))
    norms = lambda w: autodiff.vmap(autodiff.grad(loss), (None, 0, 0))(w, x, y).square().sum()  # noqa: E731
    other = lambda w: torch.vmap(func.grad(loss), (None, 0, 0))(w, x, y).square().sum()  # noqa: E731
    torch.testing.assert_close(autodiff.grad(norms)(w), func.grad(other)(w))
    made = autodiff.trace(each, w)
    torch.testing.assert_close(made(2 * w), each(2 * w))


def test_axes_and_chunks():
    x = setting()[1]
    torch.testing.assert_close(autodiff.vmap(torch.dot, (1, 1), chunk_size=2)(x, x), x.square().sum(0))
    assert autodiff.vmap(lambda a: a * 2, 0, 1)(x).shape == (3, 5)


def test_fused_operations_are_batched_by_their_equations():
    x = torch.randn(4, 6, 8)
    scale = torch.rand(8)
    f = lambda x: rms_norm(x, scale, 1e-6).square().sum()  # noqa: E731
    each = autodiff.vmap(autodiff.grad(f))(x)
    torch.testing.assert_close(each, torch.stack([autodiff.grad(f)(row) for row in x]), rtol=1e-4, atol=1e-5)


def test_a_primitive_is_not_silently_replaced():
    @autodiff.primitive(vjp=lambda g, y, x: (g * 7,))
    def own(x):
        return x * 2

    message = (
        "The primitive test_a_primitive_is_not_silently_replaced.<locals>.own is called inside torch.func or vmap, where its "
        "own rules cannot be used: loop over the examples, or write it with torch operations."
    )
    with pytest.raises(WonderlandError, match=re.escape(message)):
        autodiff.vmap(autodiff.grad(lambda x: own(x).sum()))(torch.ones(2, 3))
    torch.testing.assert_close(autodiff.jacobian(own)(torch.ones(3)), 7 * torch.eye(3))


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (lambda: autodiff.vmap(3), "vmap takes a function of tensors, not a int."),
        (lambda: autodiff.vmap(torch.sin)(), "vmap was called without a tensor to take apart."),
        (lambda: autodiff.vmap(torch.add)(torch.ones(2), torch.ones(3)), "vmap cannot take the arguments apart: vmap: Expected all tensors to have the same size in the mapped dimension, got sizes [2, 3] for the mapped dimension"),
    ],
)  # fmt: skip
def test_what_cannot_be_batched_is_told(run, message):
    with pytest.raises(WonderlandError) as error:
        run()
    assert str(error.value) == message


def mlp():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 12), nn.GELU(), nn.Linear(12, 4))
    x, y = torch.randn(16, 8), torch.randint(4, (16,))
    own = autodiff.parameters(net)
    return own, lambda own: nn.functional.cross_entropy(autodiff.call(net, own, x), y)


def test_a_hessian_runs_its_program_once():
    own, f = mlp()
    runs = []

    def counted(own):
        runs.append(1)
        return f(own)

    ours, theirs = autodiff.hessian(counted)(own), func.hessian(f)(own)
    assert len(runs) == 1
    for a in own:
        for b in own:
            torch.testing.assert_close(ours[a][b], theirs[a][b])


def test_jacobians_are_batched_and_in_pieces_where_they_are_large(monkeypatch):
    from wonderland.autodiff import transforms

    x = torch.randn(7, 5, dtype=D)
    f = lambda x: (x.cumsum(0)[2:].sin() @ x.T[:, :3]).softmax(-1)  # noqa: E731
    expected = func.jacrev(f)(x)
    for numbers in (2**24, 60, 1):
        monkeypatch.setattr(transforms, "_BATCHED_NUMBERS", numbers)
        for mode in ("forward", "reverse"):
            torch.testing.assert_close(autodiff.jacobian(f, mode=mode)(x), expected)


def test_programs_that_vmap_cannot_take_are_differentiated_one_by_one():
    @autodiff.primitive(vjp=lambda g, y, x: (torch.from_numpy(g.numpy() * 3),))
    def thrice(x):
        return torch.from_numpy(x.numpy() * 3)

    torch.testing.assert_close(autodiff.jacobian(thrice)(torch.ones(4)), 3 * torch.eye(4))


def test_the_reverse_program_keeps_the_nesting_of_its_arguments():
    p = {"w": torch.randn(3, dtype=D), "more": [torch.randn(3, dtype=D), torch.arange(3)]}
    x = torch.randn(3, dtype=D)

    def f(p, power, *, x):
        return p["w"] * p["more"][0] ** power * x

    made = autodiff.trace(f, p, 2, x=x)
    g = torch.randn(3, dtype=D)
    out, to_p, to_x = made.reverse()(p, 2, g, x=x)
    torch.testing.assert_close(out, f(p, 2, x=x))
    torch.testing.assert_close(to_p["w"], g * p["more"][0] ** 2 * x)
    torch.testing.assert_close(to_p["more"][0], g * p["w"] * 2 * p["more"][0] * x)
    assert to_p["more"][1] is None
    torch.testing.assert_close(to_x, g * p["w"] * p["more"][0] ** 2)
