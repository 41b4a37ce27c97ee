"""Printed programs run and give the same values; constants are inlined exactly or passed by name."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from wonderland import autodiff

GENERATOR = torch.Generator()


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, g):
        return g * 3 * ctx.saved_tensors[0] ** 2


class Two(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y, x * 2

    @staticmethod
    def backward(ctx, g, h):
        return g * ctx.saved_tensors[0] + h * 2


@autodiff.primitive(vjp=lambda g, y, x: (g * y,))
def raised(x):
    return torch.from_numpy(np.exp(x.numpy()))


PROGRAMS = {
    "autograd function": lambda x: Cube.apply(x).sum(),
    "two outputs": lambda x: Two.apply(x)[0] + Two.apply(x)[1],
    "primitive": lambda x: raised(x) * 2,
    "generator": lambda x: x + torch.rand(3, generator=GENERATOR) + torch.empty(3).normal_(generator=GENERATOR),
    "complex NaN": lambda x: torch.where(x > 0, torch.complex(x, x), complex(math.nan, 1)),
    "complex infinity": lambda x: x * complex(0, math.inf),
    "complex constant": lambda x: x + torch.tensor([complex(math.nan, 1), 2j, 3]),
    "infinity": lambda x: x.masked_fill(x > 0, -math.inf).clamp(min=-1e9),
    "unfilled memory": lambda x: torch.empty(3).copy_(x) * 2,
    "layer": lambda x: nn.functional.dropout(nn.functional.pad(x, (1, 1)).sum(dtype=torch.float64), 0.0),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_printed_program_runs_to_the_same_numbers(name):
    f, x = PROGRAMS[name], torch.tensor([0.5, -1.0, 2.0])
    made = autodiff.trace(f, x)
    names: dict = {}
    exec(made.code(), names)  # noqa: S102
    GENERATOR.manual_seed(1)
    found = names["program"](x, **made.captured)
    GENERATOR.manual_seed(1)
    torch.testing.assert_close(found, f(x), equal_nan=True)


def test_reverse_programs_of_functions_run_too():
    x = torch.tensor([0.5, -1.0, 2.0])
    made = autodiff.trace(PROGRAMS["autograd function"], x).reverse()
    names: dict = {}
    exec(made.code(), names)  # noqa: S102
    assert list(made.captured) == ["Cube"]
    torch.testing.assert_close(names["program_reverse"](x, **made.captured)[1], 3 * x**2)


def test_what_is_usual_is_not_said():
    text = autodiff.trace(lambda x: torch.zeros(2) + x, torch.ones(2)).code()
    assert 'v0 = torch.zeros([2], device=torch.device("cpu"))  # float32 (2)' in text
    assert "v1 = v0 + x" in text
