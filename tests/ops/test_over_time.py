"""Operations in exported programs: no kernel is in the graph, and lengths of time and batch stay free."""

import pytest
import torch
from torch import nn

from wonderland.ops import (
    fft_convolution,
    linear_attention,
    linear_scan,
    recurrence,
    selective_scan,
    short_convolution,
    wkv,
)

D = 4


def normal(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


WEIGHT = normal(4 * D, D)
CALLS = {
    "lstm": lambda x, n: recurrence("lstm", x, 1 * WEIGHT, 1 * WEIGHT, None, (x[:, 0] * 0, x[:, 0] * 0), lengths=n)[0],
    "gru_after": lambda x, n: recurrence("gru_after", x, WEIGHT[:12], WEIGHT[:12], None, (x[:, 0] * 0,), lengths=n)[0],
    "gru_before": lambda x, n: recurrence("gru_before", x, WEIGHT[:12], WEIGHT[:12], None, (x[:, 0] * 0,))[0],
    "selective_scan": lambda x, n: selective_scan(
        x, x, -WEIGHT[:D, :3].abs(), x[..., :3], x[..., 1:], skip=x[0, 0] * 0 + 1, gate=x, lengths=n
    )[0],
    "wkv": lambda x, n: wkv(x, x, -WEIGHT[0].abs(), WEIGHT[1], lengths=n)[0],
    "linear_scan": lambda x, n: linear_scan(WEIGHT[0].sigmoid(), x, lengths=n),
    "linear_scan by step": lambda x, n: linear_scan(x.sigmoid(), x),
    "linear_attention": lambda x, n: linear_attention(x[:, None], x[:, None], x[:, None])[0],
    "short_convolution": lambda x, n: short_convolution(x, WEIGHT[:D, :3], silu=True),
    "fft_convolution": lambda x, n: fft_convolution(x, x[0]),
}


class Call(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x, lengths):
        return self.function(x, lengths)


@pytest.mark.parametrize("name", CALLS)
def test_exported_operations_keep_time_free_and_answer_alike(name):
    free = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    example = (normal(3, 6, D), torch.tensor([6, 2, 3]))
    with torch.no_grad():
        program = torch.export.export(
            Call(CALLS[name]), example, dynamic_shapes=(free, {0: torch.export.Dim.DYNAMIC}), strict=False
        )
        assert "wonderland" not in str(program.graph)
        for b, t in ((1, 1), (2, 33), (5, 70)):
            x, lengths = normal(b, t, D), torch.randint(1, t + 1, (b,), generator=torch.Generator().manual_seed(t))
            torch.testing.assert_close(program.module()(x, lengths), CALLS[name](x, lengths), atol=2e-5, rtol=1e-4)
