"""Traces: printing, running, costs and the reverse program."""

import importlib.util
import re

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from wonderland import autodiff
from wonderland.core import WonderlandError

D = torch.float64


def loss(x, w):
    return F.gelu(x @ w).softmax(-1)[:, 0].log().mean()


def imported(text, folder):
    """The function that a trace prints, from a file."""
    path = folder / "printed.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("printed", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return next(value for name, value in vars(module).items() if callable(value) and name not in ("torch", "aten"))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.LayerNorm(6))
        self.head = nn.Linear(6, 3)

    def forward(self, x):
        return self.head(self.inner(x))


def test_a_trace_prints_python_that_runs_to_the_same_values(tmp_path):
    torch.manual_seed(0)
    x, w = torch.randn(3, 5, dtype=D), torch.randn(5, 4, dtype=D)
    for made, given in (
        (autodiff.trace(loss, x, w), (x, w)),
        (autodiff.trace(loss, x, w).reverse(), (x, w)),
        (autodiff.trace(autodiff.hessian(loss), x, w), (x, w)),
        (autodiff.trace(torch.fft.fft, x), (x,)),
        (autodiff.trace(lambda x: torch.cat([x, x.new_full((3, 1), float("inf"))], 1).amax(0), x), (x,)),
        (autodiff.trace(lambda x: x.std() + x.var(0).sum() + x.topk(2).values.sum(), x), (x,)),
    ):
        printed = imported(str(made), tmp_path)
        found, expected = printed(*given), made(*given)
        flat = [expected] if isinstance(expected, torch.Tensor) else list(expected)
        for one, other in zip([found] if isinstance(found, torch.Tensor) else found, flat, strict=True):
            assert torch.equal(one, other)


def test_a_trace_says_what_each_step_is_and_costs():
    made = autodiff.trace(lambda x, w: (x @ w).relu().sum(), torch.ones(2, 3), torch.ones(3, 4))
    assert [step.name for step in made.steps] == ["aten.mm.default", "aten.relu.default", "aten.sum.default"]
    first = made.steps[0].outputs[0]
    assert (first.shape, first.dtype) == ((2, 4), torch.float32)
    assert made.flops == 2 * 2 * 3 * 4 + 8 + 8
    assert re.search(r"test_trace\.py:\d+$", made.steps[0].line)
    assert made.peak == 2 * 8 * 4
    assert repr(made) == "Trace of program: 3 steps, 64 operations"
    assert made.table().splitlines()[-1] == "3 steps, 64 operations, 204 bytes moved, peak 64 bytes"
    assert "<svg" in made.html()
    assert "v0 = x0 @ x1" in made._repr_html_()


def test_modules_are_traced_with_their_parameters_and_paths():
    torch.manual_seed(0)
    net, x = Net().double(), torch.randn(2, 4, dtype=D)
    made = autodiff.trace(net, x)
    torch.testing.assert_close(made(autodiff.parameters(net), x), net(x))
    assert {step.module for step in made.steps} == {"inner.0", "inner.1", "inner.2", "head"}
    program = autodiff.trace(
        lambda own, x: autodiff.call(net, own, x).square().sum(), autodiff.parameters(net), x
    ).reverse()
    assert {step.module for step in program.steps} >= {"inner.0", "inner.1", "inner.2", "head"}
    net(x).square().sum().backward()
    _, *gradients = program(*autodiff.parameters(net).values(), x)
    for (_, value), gradient in zip(net.named_parameters(), gradients, strict=False):
        torch.testing.assert_close(gradient, value.grad)


def test_other_numbers_run_through_the_same_program():
    torch.manual_seed(0)
    x, w = torch.randn(3, 5, dtype=D), torch.randn(5, 4, dtype=D)
    program = autodiff.trace(autodiff.value_and_grad(loss, (0, 1)), x, w)
    other = torch.randn(3, 5, dtype=D), torch.randn(5, 4, dtype=D)
    torch.testing.assert_close(program(*other), autodiff.value_and_grad(loss, (0, 1))(*other))
    with pytest.raises(
        WonderlandError,
        match=re.escape("This trace was made for x0 of float64 (3, 5), not of float64 (2, 5): trace again."),
    ):
        program(x[:2], w)
    with pytest.raises(WonderlandError, match="This trace takes arguments nested as when it was made"):
        program(x)


def test_what_is_no_tensor_stays_as_it_was():
    program = autodiff.trace(lambda x, power: x**power, torch.ones(2), 3)
    assert program(torch.full((2,), 2.0), 3).tolist() == [8, 8]
    message = "This trace was made with 3 where 4 is given now: trace again."
    with pytest.raises(WonderlandError, match=re.escape(message)):
        program(torch.ones(2), 4)
    with pytest.raises(WonderlandError, match="was made with a tensor where 1 is given now"):
        program(1, 3)


def test_an_output_of_many_numbers_takes_a_cotangent():
    x = torch.randn(3, dtype=D)
    program = autodiff.trace(torch.sin, x).reverse()
    g = torch.randn(3, dtype=D)
    out, gradient = program(x, g)
    torch.testing.assert_close((out, gradient), (x.sin(), g * x.cos()))
    with pytest.raises(WonderlandError, match=re.escape("argmax returns nothing that has a derivative.")):
        autodiff.trace(torch.argmax, x).reverse()


def test_the_reverse_program_can_be_reversed_and_compiled():
    x = torch.randn(3, dtype=D)
    program = autodiff.trace(lambda x: x.exp().sin().sum(), x).reverse()
    again = autodiff.trace(lambda x: program(x)[1].sum(), x)
    gradient = autodiff.grad(lambda x: x.exp().sin().sum())
    torch.testing.assert_close(again(x), gradient(x).sum())
    torch.testing.assert_close(
        autodiff.grad(lambda x: program(x)[1].sum())(x), autodiff.grad(lambda x: gradient(x).sum())(x)
    )
    compiled = program.compile(backend="aot_eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), program(x))


def test_random_numbers_are_drawn_again_at_each_run():
    made = autodiff.trace(lambda x: F.dropout(x, 0.5), torch.ones(1000))
    torch.manual_seed(0)
    first, second = made(torch.ones(1000)), made(torch.ones(1000))
    assert not torch.equal(first, second)
    assert set(first.unique().tolist()) == {0.0, 2.0}


def test_constants_are_told_and_kept():
    scale = torch.tensor([1.0, 2.0])
    made = autodiff.trace(lambda x: x * scale, torch.ones(2))
    assert "c0 = torch.tensor([1.0, 2.0], dtype=torch.float32)" in str(made)
    assert made(torch.full((2,), 3.0)).tolist() == [3, 6]
    large = torch.arange(20.0)
    assert "# c0: float32 (20), a constant" in str(autodiff.trace(lambda x: x * large, torch.ones(20)))


def test_a_tensor_that_leaves_the_program_is_told():
    for way in (lambda x: torch.tensor(x.numpy()), lambda x: x.data_ptr(), lambda x: torch.tensor(list(x.__array__()))):
        with pytest.raises(WonderlandError, match="A tensor leaves the program through"):
            autodiff.trace(way, torch.ones(2))
    fixed = torch.ones(2)
    autodiff.trace(lambda x: x + torch.tensor(fixed.numpy()), torch.ones(2))
