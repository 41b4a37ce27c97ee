"""Every block builds and runs on the meta device, forward, backward, with a mask and piece by piece."""

import inspect

import pytest
import torch

from tests.laws.battery import cases

# Counting n-grams needs numbers; the model that holds the counts is tried with the other models.
CASES = [case for case in cases() if case.name != "language-trigrams"]


def on_meta(case):
    with torch.device("meta"):
        block = case.factory()
    example = case.tried_on(block, 7).over(
        lambda _, value: (value.float() if value.is_floating_point() else value).to("meta")
    )
    return block, example


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_block_runs_on_the_meta_device(case):
    block, example = on_meta(case)
    assert all(value.is_meta for value in (*block.parameters(), *block.buffers()))
    for training in (True, False):
        y = block.train(training)(*example.args, **example.kwargs)
        y = y[0] if isinstance(y, tuple) else y  # what adds tokens also gives their mask
        assert y.is_meta
        if y.requires_grad:
            y.sum().backward()
    x = example.input
    if len(example.args) == 1 and x.dim() == 3 and "mask" in inspect.signature(block.forward).parameters:
        mask = torch.ones((x.shape[0], x.shape[example.axis("time")]), dtype=torch.bool, device="meta")
        for training in (True, False):
            y = block.train(training)(x, mask=mask)
            assert (y[0] if isinstance(y, tuple) else y).is_meta
    if len(example.args) == 1 and hasattr(block, "stream") and block.causal:
        with torch.no_grad():
            y, state = block.stream(x[:, :4])
            y, state = block.stream(x[:, 4:5], state)
            y, state = block.stream(x[:, 5:], state)
        assert y.is_meta
