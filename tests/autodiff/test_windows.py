"""Writes through views: later reads, their derivatives, and how the trace shows them."""

import pytest
import torch
from torch import nn

from wonderland import autodiff
from wonderland.autodiff.windows import read_window, window


def halves(x):
    y = x.clone()
    left, right = y[:, :2], y[:, 2:]
    left.sigmoid_()
    right.mul_(2)
    y[0] = y[1] * 3
    return y * left.sum() + right.sum()


def rows(x):
    y = torch.zeros_like(x)
    for k in range(4):
        y[k] = x[k] * k + (y[k - 1] if k else 0)
    return y


def overlapping(x):
    y = x.exp()
    inner = y[1:3, 1:3]
    inner.add_(x[:2, :2])
    first = inner[0]
    first.mul_(first)
    y[1, 1] = x[0, 0]
    y[::2] *= 3
    return y * first.sum() * inner.sum()


def turned(x):
    y = x.exp()
    z = y.t()
    z[1] = y[:, 0] * 2
    flat = y.view(-1)
    flat[3:9] = flat[:6].clone() * 5
    y.diagonal().mul_(2)
    return z * y.t()


def units(x):
    y = x.exp()
    one, row = y[1:2], y[1]
    one.mul_(3)
    row.add_(one[0] * 2)
    y[..., None][2] += 1
    return y.sin()


@pytest.mark.parametrize("f", [halves, rows, overlapping, turned, units])
def test_what_is_written_through_views_has_its_derivatives(f):
    torch.manual_seed(0)
    x, v = torch.randn(4, 4, dtype=torch.float64), torch.randn(4, 4, dtype=torch.float64)
    moved = lambda g, x: (g(x + 1e-6 * v) - g(x - 1e-6 * v)) / 2e-6  # noqa: E731
    out, pullback = autodiff.vjp(f, x)
    g = torch.randn_like(out)
    torch.testing.assert_close(out, f(x))
    torch.testing.assert_close((pullback(g)[0] * v).sum(), (moved(f, x) * g).sum(), rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(autodiff.jvp(f, (x,), (v,))[1], moved(f, x), rtol=1e-5, atol=1e-5)
    gradient = autodiff.grad(lambda x: (f(x) * g).tanh().sum())
    torch.testing.assert_close(autodiff.jvp(gradient, (x,), (v,))[1], moved(gradient, x), rtol=1e-4, atol=1e-4)
    made = autodiff.trace(f, x)
    torch.testing.assert_close(made(v), f(v))
    torch.testing.assert_close(made.reverse()(v, g)[1], autodiff.vjp(f, v)[1](g)[0])


def test_windows_are_slices_and_selections():
    whole = torch.arange(24.0).reshape(4, 6)
    for view in (whole, whole[1], whole[:, 2], whole[1:3, ::2], whole[2:3], whole[3, 5], whole[None, 1:, None]):
        part = window(whole, view)
        assert torch.equal(read_window(part, whole), view)
        assert read_window(part, whole).shape == view.shape
    turned = whole.t().contiguous().t()
    assert torch.equal(read_window(window(turned, turned[1:3, 2]), turned), turned[1:3, 2])
    for view in (whole.t(), whole.view(-1)[2:9], whole.diagonal(), whole[0].expand(2, 6)):
        assert window(whole, view) is None
    assert window(whole, whole[:2]).is_disjoint(window(whole, whole[2:]))
    assert not window(whole, whole[:3]).is_disjoint(window(whole, whole[2:]))


def test_gates_written_in_place_read_as_a_program_without_writes():
    cell = nn.LSTM(3, 4)
    made = autodiff.trace(lambda x: cell(x)[0].sum(), torch.randn(5, 2, 3))
    assert {step.name for step in made.steps}.isdisjoint({"aten.as_strided.default", "aten.slice_scatter.default"})
    assert len(made.reverse()) < 40 * 5


def test_draws_follow_the_layout_of_memory():
    x = torch.randn(3, 4, 5)
    drop = lambda x: nn.functional.dropout(x.transpose(0, 1), 0.3)  # noqa: E731
    made = autodiff.trace(drop, x)
    gradient = autodiff.trace(autodiff.grad(lambda x: drop(x).sum()), x)
    torch.manual_seed(3)
    expected = drop(x)
    torch.manual_seed(3)
    assert torch.equal(made(x), expected)
    torch.manual_seed(3)
    torch.testing.assert_close(gradient(x).transpose(0, 1) * x.transpose(0, 1), expected)


def test_a_matrix_used_for_a_whole_batch_gets_its_gradient_by_one_product():
    x, w = torch.randn(3, 5, 4, dtype=torch.float64).transpose(0, 1), torch.randn(4, 6, dtype=torch.float64)
    f = lambda x, w: (x @ w).sin().sum()  # noqa: E731
    torch.testing.assert_close(autodiff.grad(f, (0, 1))(x, w), torch.func.grad(f, (0, 1))(x, w))
    expected = torch.autograd.functional.hessian(lambda w: f(x, w), w)
    torch.testing.assert_close(autodiff.hessian(f, 1)(x, w), expected)
    made = autodiff.trace(autodiff.grad(f, 1), x, w)
    assert [step.result.shape for step in made.steps if step.name.startswith("aten.mm")] == [(4, 6)]
