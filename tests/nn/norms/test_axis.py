"""Batch, group and instance norm with features last or channels first, against those of torch."""

import pytest
import torch
from torch import nn as torch_nn

from wonderland.core import WonderlandError
from wonderland.nn import BatchNorm, GroupNorm, InstanceNorm

SHAPES = [(5,), (5, 4), (3, 4, 2)]


def both(ours, theirs, x, axis):
    """Outputs and gradients of the two, ours with features on the given axis, both told channels first."""
    torch.manual_seed(1)
    with torch.no_grad():
        for a, b in ((ours.weight, theirs.weight), (ours.bias, theirs.bias)):
            a.copy_(torch.randn_like(a))
            b.copy_(a)
    results = []
    for module, moved in ((ours, axis == "last"), (theirs, False)):
        given = x.clone().requires_grad_()
        y = module(given.movedim(1, -1)).movedim(-1, 1) if moved else module(given)
        torch.manual_seed(2)
        grads = torch.autograd.grad(
            (y * torch.randn(y.shape, dtype=y.dtype)).sum(), [given, module.weight, module.bias]
        )
        results.append((y, *grads))
    return zip(*results, strict=True)


@pytest.mark.parametrize("axis", ["last", "first"])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    ("places", "kind"),
    [((), torch_nn.BatchNorm1d), ((5,), torch_nn.BatchNorm1d), ((5, 4), torch_nn.BatchNorm2d), ((3, 4, 2), torch_nn.BatchNorm3d)],
)  # fmt: skip
def test_batch_norm_is_that_of_torch(places, kind, training, axis):
    torch.manual_seed(0)
    ours, theirs = BatchNorm(6, axis=axis).double(), kind(6).double()
    for _ in range(2):  # running statistics of training decide what evaluation gives
        x = torch.randn(3, 6, *places, dtype=torch.float64) * 3 + 1
        ours(x.movedim(1, -1) if axis == "last" else x)
        theirs(x)
    torch.testing.assert_close(ours.mean, theirs.running_mean)
    torch.testing.assert_close(ours.variance, theirs.running_var)
    ours.train(training)
    theirs.train(training)
    for mine, other in both(ours, theirs, x, axis):
        torch.testing.assert_close(mine, other, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("axis", ["last", "first"])
@pytest.mark.parametrize("places", SHAPES)
@pytest.mark.parametrize("groups", [1, 2, 6])
def test_group_norm_is_that_of_torch(groups, places, axis):
    x = torch.randn(3, 6, *places, dtype=torch.float64) * 3 + 1
    ours, theirs = GroupNorm(6, groups=groups, axis=axis).double(), torch_nn.GroupNorm(groups, 6).double()
    for mine, other in both(ours, theirs, x, axis):
        torch.testing.assert_close(mine, other, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("axis", ["last", "first"])
@pytest.mark.parametrize(
    ("places", "kind"), [((5,), torch_nn.InstanceNorm1d), ((5, 4), torch_nn.InstanceNorm2d)]
)  # fmt: skip
def test_instance_norm_is_that_of_torch(places, kind, axis):
    x = torch.randn(3, 6, *places, dtype=torch.float64) * 3 + 1
    for mine, other in both(InstanceNorm(6, axis=axis).double(), kind(6, affine=True).double(), x, axis):
        torch.testing.assert_close(mine, other, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("axis", ["last", "first"])
@pytest.mark.parametrize(
    "build", [lambda axis: GroupNorm(6, groups=3, axis=axis), lambda axis: InstanceNorm(6, axis=axis)]
)
def test_a_row_with_padding_is_the_row_without(build, axis):
    norm, x = build(axis).double(), torch.randn(2, 5, 6, dtype=torch.float64)
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    padded = x.masked_fill(~mask.unsqueeze(-1), torch.nan)
    moved = (lambda y: y) if axis == "last" else (lambda y: y.transpose(1, 2))
    y = moved(norm(moved(padded), mask))
    torch.testing.assert_close(y[0], moved(norm(moved(x[:1])))[0])
    torch.testing.assert_close(y[1, :3], moved(norm(moved(x[1:, :3])))[0])
    assert (y[1, 3:] == 0).all()


@pytest.mark.parametrize("training", [True, False])
def test_a_batch_norm_with_channels_first_takes_a_mask(training):
    mask = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    x = torch.randn(2, 5, 6).masked_fill(~mask.unsqueeze(-1), torch.nan)
    last, first = BatchNorm(6).train(training), BatchNorm(6, axis="first").train(training)
    assert torch.equal(first(x.transpose(1, 2), mask).transpose(1, 2), last(x, mask))
    assert torch.equal(first.mean, last.mean)
    assert torch.equal(first.variance, last.variance)


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        (lambda: BatchNorm(6, axis="frist"), "BatchNorm takes an axis of 'last' or 'first', not 'frist'. Did you mean 'first'?"),
        (lambda: GroupNorm(6, groups=2, axis="1"), "GroupNorm takes an axis of 'last' or 'first', not '1'."),
        (lambda: BatchNorm(6, axis="first")(torch.randn(2, 5)), "BatchNorm takes a tensor (batch, 6, ...), not of shape (2, 5)."),
        (lambda: BatchNorm(6)(torch.randn(6)), "BatchNorm takes at least two tokens to train on: the variance of one says nothing."),
        (lambda: BatchNorm(6, axis="first")(torch.randn(1, 6, 1)), "BatchNorm takes at least two tokens to train on: the variance of one says nothing."),
        (lambda: GroupNorm(6, groups=2, axis="last")(torch.randn(2, 6, 5)), "GroupNorm takes a tensor (..., 6) with at least one row, not one of shape (2, 6, 5)."),
        (lambda: GroupNorm(6, groups=2, axis="last")(torch.randn(6)), "GroupNorm takes at least two axes, the batch and the features, not (6,)."),
        (
            lambda: GroupNorm(6, groups=2)(torch.randn(2, 6, 4, 4), torch.ones(2, 4, dtype=torch.bool)),
            "GroupNorm takes a mask with features (batch, 6, time) only, and this input has shape (2, 6, 4, 4).",
        ),
        (
            lambda: BatchNorm(6, axis="first").stream(torch.randn(2, 6, 4)),
            "This BatchNorm is not causal, so it cannot stream: call it on the whole sequence.",
        ),
    ],
)  # fmt: skip
def test_wrong_use_meets_a_sentence(run, sentence):
    with pytest.raises(WonderlandError) as caught:
        run()
    assert str(caught.value) == sentence
