"""Unusual programs: derivatives are correct, or an error says why they cannot be computed."""

import copy
import dataclasses
import re

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint

from wonderland import autodiff
from wonderland.core import WonderlandError

X = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64)


def through_no_grad(x):
    with torch.no_grad():
        scale = x.sum()
    return (x * scale).sum()


def writes_through_detach(x):
    y = x * 2
    y.detach().mul_(3)
    return (y * y).sum()


def writes_through_data(x):
    y = x * 2
    y.data.mul_(3)
    return (y * y).sum()


def writes_a_part_without_gradients(x):
    y = x * 2
    with torch.no_grad():
        y[0].mul_(3)
    return (y * y).sum()


def writes_under_a_transposed_view(x):
    y = torch.outer(x, x + 1).t().clone()
    rows, column = y[0], y.t()[1]
    y.mul_(2)
    return (rows * 3).sum() + (column**2).sum()


def picks_by_a_mask(x):
    return (x[x > 1] ** 2).sum()


@pytest.mark.parametrize(
    "f",
    [
        through_no_grad,
        writes_through_detach,
        writes_through_data,
        writes_a_part_without_gradients,
        writes_under_a_transposed_view,
        picks_by_a_mask,
    ],
)
def test_gradients_are_those_of_torch_traced_or_not(f):
    leaf = X.clone().requires_grad_()
    (expected,) = torch.autograd.grad(f(leaf), leaf)
    torch.testing.assert_close(autodiff.grad(f)(X), expected)
    value, gradient = autodiff.trace(f, X).reverse()(X)
    torch.testing.assert_close(value, f(X))
    torch.testing.assert_close(gradient, expected)


class Rounded(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, g):
        return g


class Marked(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        other = x * 3
        ctx.mark_non_differentiable(other)
        return x * 2, other

    @staticmethod
    def backward(ctx, g, _):
        return g * 2


def test_reverse_programs_keep_the_backward_pass_of_functions():
    assert autodiff.trace(lambda x: Rounded.apply(x).sum(), X).reverse()(X)[1].tolist() == [1, 1, 1]
    assert autodiff.grad(lambda x: sum(one.sum() for one in Marked.apply(x)))(X).tolist() == [2, 2, 2]


def test_functions_that_read_more_than_their_arguments_are_told():
    def loss(x):
        y = x * 2

        class Closed(torch.autograd.Function):
            @staticmethod
            def forward(ctx, z):
                return z * y

            @staticmethod
            def backward(ctx, g):
                return g

        return Closed.apply(x).sum()

    message = "Closed reads a tensor of the program that is not among its arguments"
    with pytest.raises(WonderlandError, match=message):
        autodiff.grad(loss)(X)


def test_checkpointing_of_torch_is_seen_through():
    layer = nn.Linear(3, 3).double()
    found = autodiff.grad(lambda own: autodiff.call(layer, own, X).square().sum())(autodiff.parameters(layer))
    again = autodiff.grad(
        lambda own: (
            autodiff.call(Wrapped(layer), {f"layer.{name}": value for name, value in own.items()}, X).square().sum()
        )
    )(autodiff.parameters(layer))
    torch.testing.assert_close(again, found)


class Wrapped(nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x):
        return checkpoint(self.layer, x, use_reentrant=True)


def test_inputs_in_another_layout_run_through_the_same_trace():
    def f(x):
        y = x.clone()
        column = y.t()[1]
        y.mul_(2)
        return (column**2).sum()

    x = torch.arange(9.0).reshape(3, 3)
    torch.testing.assert_close(autodiff.trace(f, x)(x.t()), f(x.t()))


def test_memory_that_somebody_else_fills_is_a_constant():
    logits = torch.randn(7, 2, 5, dtype=torch.float64)

    def loss(logits):
        return F.ctc_loss(logits.log_softmax(2), torch.tensor([[1, 2, 2], [3, 1, 0]]), [7, 6], [3, 2])

    torch.testing.assert_close(autodiff.trace(loss, logits)(logits), loss(logits))


def test_numbers_wrapped_in_a_parameter_follow_the_inputs():
    made = autodiff.trace(lambda x: nn.Parameter(x * 2) + x, X)
    torch.testing.assert_close(made(X * 5), X * 15)
    assert autodiff.grad(lambda x: (nn.Parameter(x * 2) + x).sum())(X).tolist() == [1, 1, 1]


def test_a_view_of_other_numbers_stays_one():
    assert autodiff.trace(lambda x: x.view(torch.int64), X)(X).dtype == torch.int64


def test_a_query_that_sees_nothing_has_finite_derivatives():
    mask = torch.tensor([[False] * 4] + [[True] * 4] * 3)
    q = torch.randn(1, 1, 4, 8, dtype=torch.float64)

    def f(q):
        return F.scaled_dot_product_attention(q, q, q, attn_mask=mask).sum()

    torch.testing.assert_close(autodiff.jvp(f, (q,), (q,))[1], (autodiff.grad(f)(q) * q).sum())


@dataclasses.dataclass
class Box:
    inner: torch.Tensor


BAD = [
    (
        lambda: autodiff.trace(3, X),
        "Only a function of tensors or a module can be differentiated or traced, not a int.",
    ),
    (
        lambda: torch.vmap(autodiff.grad(lambda x: x**3))(X),
        "This transform is called inside torch.func or torch.vmap, whose tensors it cannot record: "
        "use the transforms of autodiff throughout.",
    ),
    (
        lambda: autodiff.grad(lambda x: torch.complex(x, x).real.mul_(2).sum())(X),
        "The program writes through a view with another dtype, torch.float64 of torch.complex128",
    ),
    (
        lambda: autodiff.trace(lambda x: Box(x * 2), X),
        "Tensors are held by a Box, which is not known as a container: use tuples, lists, dictionaries or named tuples.",
    ),
    (lambda: autodiff.trace(lambda x: copy.deepcopy(x * 2), X), "A tensor leaves the program through a deep copy"),
    (
        lambda: autodiff.jacobian(torch.sin)(torch.ones(1, dtype=torch.complex64)),
        "jacobian is for real arguments: take real and imaginary parts, or use vjp and jvp.",
    ),
    (
        lambda: autodiff.linearize(torch.sin, X)[1](torch.ones(1)),
        "A tangent has shape (1,) where the primal has (3,).",
    ),
    (
        lambda: autodiff.grad(torch.sum, "x")(X),
        "argnums is a number or a tuple of numbers, not 'x'.",
    ),
    (
        lambda: autodiff.grad(torch.sum)(X.to_sparse()),
        "Tensors of layout torch.sparse_coo are not traced: convert with .to_dense().",
    ),
]


@pytest.mark.parametrize(("run", "message"), BAD, ids=[message[:30] for _, message in BAD])
def test_what_cannot_be_right_is_told(run, message):
    with pytest.raises(WonderlandError, match=re.escape(message)):
        run()


def test_budgets_keep_random_numbers_and_branches():
    def drawn(x):
        for _ in range(5):
            x = x.tanh() * torch.empty_like(x).exponential_()
        return x.square().mean()

    x = torch.randn(50, 20)
    without = autodiff.checkpoint(drawn, "1GB").plan(x).without
    found = []
    for budget in (10**9, int(0.9 * without)):
        torch.manual_seed(1)
        found.append(autodiff.checkpoint(drawn, budget)(x))
    torch.testing.assert_close(found[0], found[1])
    step = autodiff.checkpoint(lambda x: (x**2).sum() if x.sum() > 0 else (x**3).sum(), "1MB")
    assert step(X)[0] == 14
    assert step(-X)[0] == -36
    assert autodiff.checkpoint(picks_by_a_mask, "1MB")(X)[1].tolist() == [0, 4, 6]


class Plain(torch.Tensor):
    pass


class Loud(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})


def test_tensors_of_other_kinds_are_numbers_or_refused():
    x = torch.tensor([1.0, 2.0])
    assert autodiff.grad(lambda y: (y**2).sum())(x.as_subclass(Plain)).tolist() == [2, 4]
    assert autodiff.grad(lambda y: (y * x.as_subclass(Plain)).sum())(x).tolist() == [1, 2]
    message = "A Loud overrides operators, which a trace cannot record: convert it to a plain tensor first."
    for f in (
        lambda: autodiff.grad(lambda y: y.sum())(x.as_subclass(Loud)),
        lambda: autodiff.trace(lambda y: y * x.as_subclass(Loud), x),
    ):
        with pytest.raises(WonderlandError, match=re.escape(message)):
            f()


def hooked(y):
    y = y * 2
    y.register_hook(lambda g: 10 * g)
    return y.sum()


def asked(y):
    return torch.autograd.grad((y**3).sum(), y)[0].sum()


def chosen(y):
    return torch.cond(y.sum() > 0, lambda z: z**2, lambda z: z, (y,)).sum()


def nested(y):
    return torch.nested.as_nested_tensor([y, y]).to_padded_tensor(0).sum()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("f", "words"),
    [
        (hooked, "The program uses register_hook ("),
        (asked, "The program uses torch.autograd.grad ("),
        (chosen, "The program uses torch's operator cond, which takes functions as arguments and cannot be traced: use Python's if and for instead."),
        (nested, "Nested tensors are not traced: pad them with .to_padded_tensor(0), and mask."),
    ],
)  # fmt: skip
def test_what_needs_another_graph_is_told(f, words):
    with pytest.raises(WonderlandError, match=re.escape(words)):
        autodiff.grad(f)(torch.tensor([1.0, 2.0]))


def test_backward_hooks_and_lazy_layers_are_told():
    layer = torch.nn.Linear(2, 2)
    layer.register_full_backward_hook(lambda *_: None)
    with pytest.raises(WonderlandError, match=re.escape("Linear has backward hooks, which only loss.backward() runs:")):
        autodiff.grad(lambda x: layer(x).sum())(torch.ones(2))
    with pytest.raises(
        WonderlandError, match=re.escape("The module has lazy layers whose shapes are not known yet: call")
    ):
        autodiff.parameters(torch.nn.LazyLinear(2))


def test_none_among_parameters_stays_none():
    x = torch.tensor([1.0, 2.0])
    own = {"weight": x, "bias": None}
    assert autodiff.grad(lambda own: (own["weight"] ** 2).sum())(own)["bias"] is None
    assert autodiff.grad(lambda own: (own["weight"] ** 2).sum())(own)["weight"].tolist() == [2, 4]
    moved = autodiff.jvp(lambda own: own["weight"] ** 2, (own,), ({"weight": x, "bias": None},))[1]
    assert moved.tolist() == [2, 8]


def test_forward_mode_of_layer_norm_differentiates_again():
    torch.manual_seed(0)
    x, v, g = torch.randn(3, 2, 4, dtype=torch.float64)
    norm = torch.nn.LayerNorm(4).double()
    loss = lambda x: (norm(x) * g).sin().sum()  # noqa: E731
    expected = autodiff.jvp(autodiff.grad(loss), (x,), (v,))[1]
    found = autodiff.grad(lambda x: autodiff.jvp(loss, (x,), (v,))[1])(x)
    torch.testing.assert_close(found, expected)
    gradient = autodiff.grad(loss)
    torch.testing.assert_close(expected, (gradient(x + 1e-6 * v) - gradient(x - 1e-6 * v)) / 2e-6, rtol=1e-6, atol=1e-7)


def test_packed_sequences_have_all_derivatives():
    torch.manual_seed(0)
    body = torch.nn.GRU(3, 2, batch_first=True).double()
    lengths = torch.tensor([2, 4, 3])

    def read(x):
        packed = torch.nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        return torch.nn.utils.rnn.pad_packed_sequence(body(packed)[0], batch_first=True)[0].sin().sum()

    x, v = torch.randn(2, 3, 4, 3, dtype=torch.float64)
    x = x.requires_grad_()
    expected = torch.autograd.grad(read(x), x)[0]
    torch.testing.assert_close(autodiff.grad(read)(x), expected)
    torch.testing.assert_close(autodiff.jvp(read, (x,), (v,))[1], (expected * v).sum())
