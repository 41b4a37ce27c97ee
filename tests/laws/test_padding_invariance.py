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

    for named in (None, "attention_mask"):  # the usual names are found
        assert padding_invariance(Foreign(), Example.floats(3, 7, 4, mask=named)).outcome == "holds"
    assert padding_invariance(nn.Linear(4, 4), Example.floats(3, 7, 4)).witness == "its forward takes no mask"


def test_a_mask_that_the_example_holds_goes_through_wrappers():
    class Wrapper(nn.Module):
        def __init__(self, real):
            super().__init__()
            self.real = real

        def forward(self, *args, **kwargs):
            x, mask = args[0], kwargs.get("attention_mask")
            mask = torch.ones(x.shape[:2]).to(x) if mask is None else mask.to(x)
            return (x * mask.unsqueeze(-1)).sum(1) / (mask.sum(1, keepdim=True) if self.real else x.shape[1])

    example = Example((torch.randn(3, 7, 4),), {"attention_mask": torch.ones(3, 7, dtype=torch.long)})
    assert padding_invariance(Wrapper(True), example).outcome == "holds"
    assert padding_invariance(Wrapper(False), example).outcome == "broken"


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


class Pooled(nn.Module):
    """A mean over real tokens, for masks of one dtype; `leak` counts padding too."""

    def __init__(self, dtype, *, real=True, leak=False):
        super().__init__()
        self.dtype, self.real, self.leak = dtype, real, leak

    def forward(self, x, mask):
        assert mask.dtype == self.dtype, f"a mask of {mask.dtype}"
        weights = (mask if self.real else 1 - mask if mask.dtype != torch.bool else ~mask).to(x).unsqueeze(-1)
        pooled = (x * weights).sum(1, keepdim=True)
        return x + pooled / (x.shape[1] if self.leak else weights.sum(1, keepdim=True))


@pytest.mark.parametrize("dtype", [torch.bool, torch.long, torch.int32, torch.float64])
@pytest.mark.parametrize("where", ["by name", "by position"])
@pytest.mark.parametrize("real", [True, False])
def test_masks_have_the_type_of_the_one_given(dtype, where, real):
    if dtype.is_floating_point and not real:
        return  # zeros throughout are added to scores
    mask = (torch.ones if real else torch.zeros)(3, 7, dtype=dtype)
    x = torch.randn(3, 7, 4)
    example = {
        "by name": Example((x,), {"mask": mask}, mask="mask"),
        "by position": Example((x, mask), mask="mask"),
    }[where]
    assert padding_invariance(Pooled(dtype, real=real), example).outcome == "holds"
    assert padding_invariance(Pooled(dtype, real=real, leak=True), example).outcome == "broken"


@pytest.mark.parametrize("given", [0.0, -1e9, float("-inf")])
def test_a_mask_that_is_added_to_scores(given):
    class Attention(nn.Module):
        def __init__(self, late):
            super().__init__()
            self.late = late

        def forward(self, x, attention_mask=None):
            scores = x @ x.mT
            if attention_mask is not None:
                assert bool((attention_mask <= 0).all())
                scores = scores + attention_mask.unsqueeze(1).roll(self.late, -1)
            return scores.softmax(-1) @ x

    mask = torch.zeros(3, 7)
    mask[1, 5:] = given
    example = Example((torch.randn(3, 7, 4),), {"attention_mask": mask}, mask="attention_mask")
    assert padding_invariance(Attention(0), example).outcome == "holds"
    assert padding_invariance(Attention(1), example).outcome == "broken"


def test_without_a_mask_in_the_example_the_dtype_is_the_one_that_is_taken():
    class Bools(Mean):
        def forward(self, x, attention_mask=None):
            return super().forward(x, attention_mask)  # ~mask needs booleans

    example = Example.floats(3, 7, 4, mask="attention_mask")
    assert padding_invariance(Bools(), example).outcome == "holds"
    assert padding_invariance(Bools("counts"), example).outcome == "broken"
