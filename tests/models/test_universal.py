"""The book's construction: its three errors, its rate, its signs, and that it is a real network."""

import math
import re

import pytest
import torch

from wonderland import WonderlandError
from wonderland.models.universal import approximate, approximate_with_relu, bin_function, mean_squared_error


def sinc(x):
    return torch.sin(x) / x


def error(m, layout="cover"):
    return mean_squared_error(approximate(sinc, m, high=10.0, layout=layout), sinc, low=0.0, high=10.0)


@pytest.mark.parametrize(("bins", "printed", "digits"), [(5, 0.02, 2), (15, 0.002, 3), (50, 0.00016, 5)])
def test_the_three_errors_that_the_book_prints(bins, printed, digits):
    actual = error(bins, "ends")
    assert actual == pytest.approx(printed, rel=0.1)
    if bins != 50:
        assert round(actual, digits) == printed


@pytest.mark.parametrize(("bins", "known"), [(5, 0.0148), (15, 0.00175), (50, 0.00016)])
def test_bins_that_cover_the_interval_do_better(bins, known):
    assert error(bins) == pytest.approx(known, rel=0.02)
    assert error(bins) <= error(bins, "ends")


def test_the_error_falls_with_the_square_of_the_bins():
    errors = [error(m) for m in (50, 100, 200)]
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.02)
    assert errors[1] / errors[2] == pytest.approx(4, rel=0.02)
    x = torch.linspace(1e-6, 10, 100_001, dtype=torch.float64)
    gradient = (x * x.cos() - x.sin()) / x.square()
    assert errors[2] == pytest.approx(float((10 / 200) ** 2 / 12 * gradient.square().mean()), rel=0.01)


def test_straight_lines_fall_with_the_fourth_power():
    errors = [
        mean_squared_error(approximate_with_relu(torch.cos, m, high=6.0), torch.cos, low=0.0, high=6.0)
        for m in (50, 100)
    ]
    assert errors[0] / errors[1] == pytest.approx(16, rel=0.02)


def test_a_bin_has_the_sign_of_its_height():
    x = torch.tensor([0.1, 0.3, 0.5], dtype=torch.float64)
    for height in (2.0, -3.0):
        torch.testing.assert_close(
            bin_function(x, height, 0.3, 0.2), torch.tensor([0.0, height, 0.0], dtype=torch.float64)
        )
    printed = 2 * torch.sigmoid(1e4 * (x - 0.3 - 0.1)) - 2 * torch.sigmoid(1e4 * (x - 0.3 + 0.1))
    assert float(printed[1]) == pytest.approx(-2)


def test_the_network_is_the_sum_of_its_bins():
    net = approximate(torch.cos, 4, low=-1.0, high=3.0)
    x = torch.linspace(-2, 4, 97, dtype=torch.float64)
    centers = [-0.5, 0.5, 1.5, 2.5]
    heights = [math.sin(c + 0.5) - math.sin(c - 0.5) for c in centers]
    wanted = sum(bin_function(x, a, s, 1.0) for a, s in zip(heights, centers, strict=True))
    torch.testing.assert_close(net(x.unsqueeze(1)).squeeze(1), wanted, rtol=0, atol=1e-5)


def test_it_is_a_network_of_2m_neurons_that_can_be_trained_on():
    net = approximate(torch.cos, 7)
    assert [tuple(p.shape) for p in net.parameters()] == [(14, 1), (14,), (1, 14)]
    net(torch.rand(3, 1, dtype=torch.float64)).sum().backward()
    assert all(p.grad is not None for p in net.parameters())


def test_a_constant_is_exact_inside():
    net = approximate(lambda x: torch.full_like(x, 3.0), 9)
    x = torch.linspace(0.01, 0.99, 50, dtype=torch.float64)
    torch.testing.assert_close(net(x.unsqueeze(1)), torch.full((50, 1), 3.0, dtype=torch.float64))


SENTENCES = [
    (lambda: approximate(torch.sin, 0), "`bins` has to be a whole number of at least 1, not 0."),
    (lambda: approximate(torch.sin, 1, layout="ends"), "`bins` has to be a whole number of at least 2, not 1."),
    (lambda: approximate(torch.sin, 3, layout="left"), "`layout` has to be one of 'cover', 'ends', not 'left'."),
    (lambda: approximate(torch.sin, 3, low=1.0, high=1.0), "`low` has to lie below `high`; they are 1.0 and 1.0."),
    (
        lambda: approximate(lambda x: x.sum(), 3),
        "`g` gave shape () for (600,): it has to be elementwise.",
    ),
    (
        lambda: approximate_with_relu(lambda x: 1 / x, 3),
        "`g` is not finite at 0: it has to be continuous on the whole interval.",
    ),
    (lambda: approximate(torch.sin, 3, sharpness=-1.0), "`sharpness` has to be a positive number, not -1.0."),
]


@pytest.mark.parametrize(("call", "sentence"), SENTENCES, ids=range(len(SENTENCES)))
def test_what_is_said(call, sentence):
    with pytest.raises(WonderlandError, match=f"^{re.escape(sentence)}$"):
        call()
