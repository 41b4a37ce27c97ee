"""Group and instance norm are torch's, and one function gives every norm."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from wonderland.core import WonderlandError
from wonderland.nn.norms.normalise import GroupNorm, InstanceNorm, normalise

X = torch.randn(3, 4, 5, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_group_norm_is_torchs(groups):
    ours, torchs = GroupNorm(4, groups=groups).double(), nn.GroupNorm(groups, 4).double()
    for name in ("weight", "bias"):
        nn.init.normal_(getattr(ours, name))
        getattr(torchs, name).data.copy_(getattr(ours, name))
    torch.testing.assert_close(ours(X), torchs(X))


def test_a_group_for_each_channel_is_instance_norm_and_one_group_is_layer_norm():
    torch.testing.assert_close(InstanceNorm(4).double()(X), F.instance_norm(X))
    torch.testing.assert_close(GroupNorm(4, groups=4).double()(X), F.instance_norm(X))
    torch.testing.assert_close(GroupNorm(4, groups=1).double()(X), F.layer_norm(X, X.shape[1:]))


def test_every_norm_is_a_choice_of_axes():
    torch.testing.assert_close(normalise(X, (0, 2, 3)), F.batch_norm(X, None, None, training=True))
    torch.testing.assert_close(normalise(X, (1, 2, 3)), F.layer_norm(X, X.shape[1:]))
    torch.testing.assert_close(normalise(X, (2, 3)), F.instance_norm(X))
    torch.testing.assert_close(normalise(X, (3,), centre=False, eps=1e-6), F.rms_norm(X, X.shape[3:], eps=1e-6))
    centred = X - X.mean(3, keepdim=True)
    torch.testing.assert_close(normalise(centred, (3,)), normalise(centred, (3,), centre=False))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: GroupNorm(4, groups=3), "GroupNorm takes a number of groups that divides its dim of 4, not 3."),
        (
            lambda: InstanceNorm(4, eps=0),
            "InstanceNorm adds a small positive eps, which keeps a map of zeros finite, not 0.",
        ),
        (
            lambda: GroupNorm(4, groups=2)(torch.ones(2, 3, 5)),
            "GroupNorm takes a tensor (batch, 4, ...), not of shape (2, 3, 5).",
        ),
        (
            lambda: InstanceNorm(4)(torch.ones(2, 4, 1, 1)),
            "InstanceNorm takes more than one number in each group, and (2, 4, 1, 1) has one: its answer would be 0.",
        ),
    ],
)
def test_wrong_use_meets_a_sentence(call, sentence):
    with pytest.raises(WonderlandError) as error:
        call()
    assert str(error.value) == sentence
