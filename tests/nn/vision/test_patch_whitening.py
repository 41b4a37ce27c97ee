import numpy as np
import pytest
import torch

from wonderland import nn
from wonderland.core import WonderlandError


def test_whitened_patches_have_no_correlation():
    random = np.random.default_rng(0)
    smooth = np.cumsum(random.normal(size=(60, 3, 12, 12)), 3)
    rows = nn.whitening_directions(smooth, 2, eps=0.0)
    layer = nn.PatchWhitening(3, directions=rows.tolist())
    out = layer(torch.from_numpy(smooth).float()).detach()
    assert out.shape == (60, 24, 11, 11)
    torch.testing.assert_close(out[:, 12:], -out[:, :12])
    values = out[:, :12].double().transpose(0, 1).flatten(1)
    torch.testing.assert_close(values @ values.T / values.shape[1], torch.eye(12).double(), atol=2e-3, rtol=0)
    assert [name for name, _ in layer.named_parameters()] == ["bias"]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"channels": 3, "size": 0}, "PatchWhitening cannot be built with channels=3, size=0: both are at least 1"),
        ({"channels": 1, "directions": [[1.0]]}, r"PatchWhitening needs 4 directions of 4 numbers for patches of 1 x 2 x 2, not \(1, 1\)"),
    ],
)  # fmt: skip
def test_sizes_that_cannot_be(arguments, sentence):
    with pytest.raises(WonderlandError, match=sentence):
        nn.PatchWhitening(**arguments)
