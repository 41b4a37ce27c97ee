"""Batch norm is torch's, counts real tokens only, and in evaluation is an affine map."""

import pytest
import torch
from torch import nn

from wonderland.core import WonderlandError
from wonderland.nn.blocks.block import Block
from wonderland.nn.channel.mlp import MLP
from wonderland.nn.norms.batch_norm import BatchNorm, precise_statistics


def said(call) -> str:
    with pytest.raises(WonderlandError) as error:
        call()
    return str(error.value)


def pair():
    ours, torchs = BatchNorm(4).double(), nn.BatchNorm1d(4).double()
    for name in ("weight", "bias"):
        nn.init.normal_(getattr(ours, name))
        getattr(torchs, name).data.copy_(getattr(ours, name))
    return ours, torchs


def test_training_and_evaluation_are_torchs():
    ours, torchs = pair()
    for _ in range(3):
        x = torch.randn(3, 5, 4, dtype=torch.float64) * 2 + 1
        mine, theirs = x.clone().requires_grad_(), x.clone().requires_grad_()
        y, z = ours(mine), torchs(theirs.transpose(1, 2)).transpose(1, 2)
        torch.testing.assert_close(y, z)
        weight = torch.randn_like(y)
        (y * weight).sum().backward()
        (z * weight).sum().backward()
        torch.testing.assert_close(mine.grad, theirs.grad)
    torch.testing.assert_close(ours.mean, torchs.running_mean)
    torch.testing.assert_close(ours.variance, torchs.running_var)
    torch.testing.assert_close(ours.eval()(x), torchs.eval()(x.transpose(1, 2)).transpose(1, 2))


def test_the_output_has_the_mean_and_variance_of_its_parameters():
    norm = BatchNorm(3, eps=1e-12).double()
    norm.weight.data, norm.bias.data = torch.tensor([2.0, 3.0, -4.0]).double(), torch.tensor([1.0, 0.0, 5.0]).double()
    y = norm(torch.randn(6, 7, 3, dtype=torch.float64) * 9).flatten(0, 1)
    torch.testing.assert_close(y.mean(0), norm.bias)
    torch.testing.assert_close(y.var(0, correction=0), norm.weight.square())


def test_evaluation_is_affine():
    norm = pair()[0]
    norm(torch.randn(3, 5, 4, dtype=torch.float64))
    norm.eval()
    x, y, a = torch.randn(2, 1, 4, dtype=torch.float64), torch.randn(2, 1, 4, dtype=torch.float64), 0.3
    torch.testing.assert_close(norm(a * x + (1 - a) * y), a * norm(x) + (1 - a) * norm(y))


def test_a_shift_and_a_positive_scale_of_the_input_are_lost_in_training():
    norm = BatchNorm(4, eps=1e-12).double()
    x = torch.randn(3, 5, 4, dtype=torch.float64)
    torch.testing.assert_close(norm(7 * x + 3), norm(x))


def test_padding_is_not_counted_in_training():
    x = torch.randn(2, 5, 4, dtype=torch.float64)
    mask = torch.tensor([[True] * 5, [True, True, False, False, False]])
    padded, plain = BatchNorm(4).double(), BatchNorm(4).double()
    spoilt = x.masked_fill(~mask.unsqueeze(-1), torch.nan)
    y = padded(spoilt, mask)
    torch.testing.assert_close(y[mask], plain(x[mask].unsqueeze(0))[0])
    torch.testing.assert_close(padded.mean, plain.mean)
    torch.testing.assert_close(padded.variance, plain.variance)
    assert y[~mask].count_nonzero() == 0


@pytest.mark.parametrize("placement", ["pre", "post", "parallel"])
def test_padding_is_not_counted_inside_a_block_either(placement):
    block = Block(3, MLP.spec(), norm=BatchNorm.spec(), placement=placement)
    mask = torch.arange(6) < torch.tensor([[6], [2]])
    x = torch.randn(2, 6, 3).masked_fill(~mask.unsqueeze(-1), torch.nan)
    y = block(x, mask)[mask]
    mean = block.norms[0].mean.clone()
    alone = Block(3, MLP.spec(), norm=BatchNorm.spec(), placement=placement)
    alone.load_state_dict({**block.state_dict(), "norms.0.mean": torch.zeros(3), "norms.0.variance": torch.ones(3)})
    assert torch.allclose(alone(x[mask].unsqueeze(0))[0], y, atol=1e-6)
    assert torch.allclose(alone.norms[0].mean, mean, atol=1e-6)


def test_precise_statistics_are_those_of_all_rows_whatever_the_batches():
    x = torch.randn(11, 3, 4, dtype=torch.float64) * 5 + 100
    norm = BatchNorm(4).double()
    precise_statistics(norm, [x[:2], x[2:9], x[9:]])
    rows = x.flatten(0, 1)
    torch.testing.assert_close(norm.mean, rows.mean(0))
    torch.testing.assert_close(norm.variance, rows.var(0, correction=0))
    torch.testing.assert_close(norm.eval()(x).flatten(0, 1).mean(0), torch.zeros(4).double(), atol=1e-9, rtol=0)


def test_precise_statistics_reach_norms_inside_models_and_leave_modes_alone():
    model = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3), nn.Dropout(0.5), nn.Conv2d(3, 2, 1), nn.BatchNorm2d(2))
    model.double().eval()
    x = torch.randn(6, 2, 5, 5, dtype=torch.float64)
    assert precise_statistics(model, [x]) == 2
    assert not any(one.training for one in model.modules())
    y = model[0](x)
    torch.testing.assert_close(model[1].running_mean, y.mean((0, 2, 3)))
    torch.testing.assert_close(model[1].running_var, y.var((0, 2, 3), correction=0))
    assert model[1].num_batches_tracked == 0
    torch.testing.assert_close(model(x).mean((0, 2, 3)), torch.zeros(2).double(), atol=1e-9, rtol=0)
    block = Block(4, MLP.spec(), norm=BatchNorm.spec())
    assert precise_statistics(block, [torch.randn(3, 5, 4)]) == 1


def test_wrong_use_meets_a_sentence():
    assert said(lambda: BatchNorm(4)(torch.ones(1, 1, 4))) == (
        "BatchNorm takes at least two tokens to train on: the variance of one says nothing."
    )
    assert said(lambda: BatchNorm(4, rate=0)) == "BatchNorm takes a rate above 0 and up to 1, not 0."
    assert said(lambda: BatchNorm(4, eps=-1)) == (
        "BatchNorm adds a small positive eps, which keeps a token of zeros finite, not -1."
    )
    assert said(lambda: precise_statistics(MLP(4), [])) == (
        "precise_statistics takes a model with a batch norm in it, and this one has none."
    )
    assert said(lambda: precise_statistics(BatchNorm(4), [])) == (
        "precise_statistics takes batches that reach every batch norm, and one saw nothing."
    )
