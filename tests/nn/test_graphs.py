"""Slopes in a graph, made to be differentiated again, are the slopes without one."""

import pytest
import torch

from tests.laws.battery import cases, first_of_their_class

BLOCKS = [case for case in first_of_their_class(cases()) if case.example is None]


def both(call, inputs):
    return [torch.autograd.grad(call(), inputs, create_graph=graph, allow_unused=True) for graph in (False, True)]


@pytest.mark.parametrize("case", BLOCKS, ids=lambda case: case.name)
def test_a_graph_changes_no_slope(case):
    block = case.build().double().eval()
    x = torch.randn(2, 5, block.dim, dtype=torch.float64, requires_grad=True)
    inputs = [x, *(weight for weight in block.parameters() if weight.requires_grad)]

    def pieces():
        first, state = block.stream(x[:, :2])
        return first.square().sum() + block.stream(x[:, 2:], state)[0].square().sum()

    ways = [lambda: block(x).square().sum()]
    if block(x).shape == x.shape:
        # One weight at two places, and one input that comes from another: a way must not be gone twice.
        ways.append(lambda: block(block(x)).square().sum())
    if getattr(block, "causal", False):
        ways.append(pieces)
    for way in ways:
        for plain, graphed in zip(*both(way, inputs), strict=True):
            assert (plain is None) == (graphed is None)
            if plain is not None:
                torch.testing.assert_close(graphed, plain, rtol=1e-9, atol=1e-9 * float(plain.abs().max()))
