"""Pointwise parts take features with any number of axes, and give each row what it gets alone."""

import pytest
import torch
from torch import nn as torch_nn

from wonderland import nn
from wonderland.core import WonderlandError

PARTS = {
    "MLP": lambda: nn.MLP(8),
    "MLP with dropout": lambda: nn.MLP(8, activation="tanh", dropout=0.1),
    "GLU": lambda: nn.GLU(8),
    "Maxout": lambda: nn.Maxout(8, pieces=3),
    "KAN": lambda: nn.KAN(8, grid=3),
    "MONet": lambda: nn.MONet(8),
    "Dropout": lambda: nn.Dropout(8, dropout=0.5),
    "ChannelDropout": lambda: nn.ChannelDropout(8, dropout=0.5),
    "DropConnect": lambda: nn.DropConnect(8, 8),
    "LayerNorm": lambda: nn.LayerNorm(8),
    "LayerNorm without bias": lambda: nn.LayerNorm(8, bias=False),
    "RMSNorm": lambda: nn.RMSNorm(8),
    "BatchNorm": lambda: nn.BatchNorm(8),
    "WeightNormLinear": lambda: nn.WeightNormLinear(8),
    "MemoryAttention": lambda: nn.MemoryAttention(8, slots=4),
    "LoRA": lambda: nn.LoRA(torch_nn.Linear(8, 8)),
    "IA3": lambda: nn.IA3(torch_nn.Linear(8, 8)),
    "Bottleneck": lambda: nn.Bottleneck(torch_nn.Linear(8, 8)),
    "BiasTuning": lambda: nn.BiasTuning(torch_nn.Linear(8, 8)),
    "EluPlusOne": lambda: nn.EluPlusOne(8),
    "ReluFeatures": lambda: nn.ReluFeatures(8),
    "ExpFeatures": lambda: nn.ExpFeatures(8),
}
SHAPES = [(8,), (5, 8), (3, 5, 8), (2, 3, 5, 8), (2, 1, 3, 2, 8)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", sorted(PARTS))
def test_a_row_among_others_gets_what_it_gets_alone(name, shape, dtype):
    torch.manual_seed(0)
    part = PARTS[name]().to(dtype).eval()
    x = torch.randn(shape, dtype=dtype, requires_grad=True)
    y = part(x)
    assert y.shape == x.shape
    rows = x.detach().reshape(-1, 1, 8).clone().requires_grad_()
    alone = torch.stack([part(row.unsqueeze(0)).view(8) for row in rows])
    close = {"rtol": 1e-4, "atol": 1e-5} if dtype == torch.float32 else {}
    torch.testing.assert_close(y.reshape(-1, 8), alone, **close)
    y.square().sum().backward()
    alone.square().sum().backward()
    torch.testing.assert_close(x.grad.reshape(-1, 8), rows.grad.reshape(-1, 8), **close)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", sorted(name for name in PARTS if name != "BatchNorm"))
def test_a_part_trains_on_any_number_of_axes(name, shape):
    part = PARTS[name]().train()
    x = torch.randn(shape, requires_grad=True)
    y = part(x)
    assert y.shape == x.shape
    y.sum().backward()
    assert x.grad.shape == x.shape


def test_the_dropout_of_the_books():
    torch.manual_seed(0)
    y = nn.Dropout(100, dropout=0.25)(torch.ones(200, 100))
    assert set(y.unique().tolist()) == {0.0, torch.tensor(1 / 0.75).item()}
    assert 0.7 < (y > 0).float().mean() < 0.8


def test_channel_dropout_draws_once_for_all_places_of_a_row():
    torch.manual_seed(0)
    y = nn.ChannelDropout(16, dropout=0.5)(torch.ones(3, 4, 5, 16))
    assert torch.equal(y, y[:, :1, :1].expand_as(y))
    assert not torch.equal(y[0], y[1])
    assert nn.ChannelDropout(64, dropout=0.5)(torch.ones(2, 64)).std(1).min() > 0


def test_drop_connect_draws_for_each_row_on_any_number_of_axes():
    torch.manual_seed(0)
    part = nn.DropConnect(8, 8, each=True, bias=False)
    y = part(torch.ones(2, 3, 4, 8))
    assert torch.equal(y[0], y[0, :1, :1].expand_as(y[0]))
    assert not torch.equal(y[0], y[1])
    assert part(torch.ones(8)).shape == (8,)


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        (lambda: nn.MLP(8)(torch.randn(2, 7)), "MLP takes a tensor (..., 8) with at least one row, not one of shape (2, 7)."),
        (lambda: nn.MLP(8)(torch.tensor(1.0)), "MLP takes a tensor (..., 8) with at least one row, not one of shape ()."),
        (lambda: nn.MLP(8)(torch.randn(0, 8)), "MLP takes a tensor (..., 8) with at least one row, not one of shape (0, 8)."),
        (lambda: nn.MLP(8)([1.0] * 8), "MLP takes a tensor (..., 8) with at least one row, not one of type list."),
        (
            lambda: nn.MLP(8)(torch.randn(2, 8), torch.ones(2, dtype=torch.bool)),
            "MLP takes a mask with tokens (batch, time, 8) only, and this input has shape (2, 8).",
        ),
        (
            lambda: nn.MONet(8, shift=True)(torch.randn(2, 8)),
            "MONet takes a tensor (batch, time, 8) with at least one row and one position, not one of shape (2, 8).",
        ),
        (
            lambda: nn.GRU(8)(torch.randn(2, 8)),
            "GRU takes a tensor (batch, time, 8) with at least one row and one position, not one of shape (2, 8).",
        ),
    ],
)  # fmt: skip
def test_wrong_shapes_meet_a_sentence(run, sentence):
    with pytest.raises(WonderlandError) as caught:
        run()
    assert str(caught.value) == sentence
