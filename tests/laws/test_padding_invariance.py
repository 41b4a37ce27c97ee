"""Padding invariance detects padding that influences outputs."""

import pytest
import torch
from torch import nn

from tests.laws.toys import Running
from wonderland.laws import Example, padding_invariance


@pytest.mark.parametrize("length", [1, 2, 3, 7])
@pytest.mark.parametrize("rows", [1, 3])
def test_hidden_positions_change_nothing(length, rows):
    assert padding_invariance(Running(), Example.floats(rows, length, 4)).outcome == "holds"


def test_an_answer_at_padding_is_found():
    verdict = padding_invariance(Running(fault="answers at padding"), Example.floats(3, 7, 4))
    assert not verdict
    assert "is padding and answers" in verdict.witness


class Mean(nn.Module):
    """The mean of the real inputs, added to each; `leak` counts padding as zeros, or lets gradients into it."""

    def __init__(self, leak: str = ""):
        super().__init__()
        self.leak = leak
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x, mask=None):
        x = x * self.scale if mask is None else x.masked_fill(~mask.unsqueeze(-1), 0) * self.scale
        count = x.shape[1] if mask is None or self.leak == "counts" else mask.sum(1).view(-1, 1, 1)
        return x + x.sum(1, keepdim=True) / count


def test_padding_that_is_counted_is_found():
    assert padding_invariance(Mean(), Example.floats(3, 7, 4)).outcome == "holds"
    verdict = padding_invariance(Mean("counts"), Example.floats(3, 7, 4))
    assert not verdict
    assert "padded positions came beside it" in verdict.witness
    assert "(row 0)" not in verdict.witness  # the longest row has no padding


def test_a_gradient_into_padding_is_found():
    class Leak(Mean):
        def forward(self, x, mask=None):
            y = super().forward(x, mask)
            last = x[:, -1:].nan_to_num()
            return y + last - last.detach() if mask is not None else y

    verdict = padding_invariance(Leak(), Example.floats(3, 7, 4))
    assert not verdict
    assert "gradient" in verdict.witness or "derivative" in verdict.witness


def test_a_foreign_mask_is_named_and_padding_is_finite():
    class Foreign(nn.Module):
        def forward(self, x, attention_mask=None):
            assert bool(x.isfinite().all())
            assert attention_mask is None or attention_mask.dtype == torch.int64
            return Mean()(x, None if attention_mask is None else attention_mask.bool()) + 1

    assert padding_invariance(Foreign(), Example.floats(3, 7, 4)).witness == "its forward takes no mask"
    assert padding_invariance(Foreign(), Example.floats(3, 7, 4, mask="attention_mask")).outcome == "holds"


@pytest.mark.parametrize("length", [1, 2, 4, 7])
def test_an_output_without_positions_counts_whole(length):
    class Latents(Mean):
        def forward(self, x, mask=None):
            return torch.outer(torch.arange(4.0).to(x), super().forward(x, mask)[:, 0].sum(1)).T

    class Four(Latents):
        def forward(self, x, mask=None):
            return super().forward(x, mask).unsqueeze(-1)

    for pooled in (Latents, Four):
        assert padding_invariance(pooled(), Example.floats(3, length, 4)).outcome == "holds"
    verdict = padding_invariance(Latents("counts"), Example.floats(3, 7, 4))
    assert verdict.witness.startswith("the output (row 1) moved by")


def test_padding_can_come_first():
    class Positions(Mean):
        def forward(self, x, mask=None):
            return super().forward(x, mask) + torch.arange(x.shape[1]).view(1, -1, 1)

    example = Example.floats(3, 7, 4, mask="mask", side="left")

    class Flags(Positions):
        def forward(self, x, mask=None):
            return super().forward(x, None if mask is None else mask.bool())

    assert not padding_invariance(Flags(), example)
    assert padding_invariance(Flags(), Example.floats(3, 7, 4, mask="mask")).outcome == "holds"


def test_a_mask_that_is_none_of_padding_accuses_nobody():
    layer = torch.nn.TransformerEncoderLayer(8, 2, batch_first=True)
    found = padding_invariance(torch.nn.TransformerEncoder(layer, 1, enable_nested_tensor=False), torch.randn(2, 9, 8))
    assert found.outcome == "not applicable"
    assert found.witness.startswith(
        "its mask is not one of padding (batch, time), which it refused: it raised RuntimeError ("
    )


class Touchy(nn.Module):
    """Takes a mask of padding, and refuses what is hidden there."""

    def laws(self):
        return (padding_invariance,)

    def forward(self, x, mask=None):
        if x.isnan().any():
            raise ValueError("NaN")
        return x


def test_who_takes_the_mask_and_refuses_the_padding_breaks_its_promise():
    assert padding_invariance(Touchy(), torch.randn(2, 9, 8)).outcome == "broken"
