"""Token shift: each token mixed with its predecessor, with and without a token before the first."""

import pytest
import torch

from wonderland.ops.blend import blend


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("t", [1, 7])
def test_each_token_is_mixed_with_the_one_before_it(t, before):
    x, last = torch.randn(2, t, 3), torch.randn(2, 1, 3) if before else None
    shares = torch.rand(3, 3)
    for share, mixed in zip(shares, blend(x, last, *shares), strict=True):
        for i in range(t):
            previous = x[:, i - 1] if i else torch.zeros(2, 3) if last is None else last[:, 0]
            assert torch.allclose(mixed[:, i], share * x[:, i] + (1 - share) * previous, atol=1e-6)


def test_gradients():
    x = torch.randn(2, 5, 3, dtype=torch.float64, requires_grad=True)
    last = torch.randn(2, 1, 3, dtype=torch.float64, requires_grad=True)
    shares = torch.rand(3, 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, last, shares: blend(x, last, *shares), (x, last, shares))
    assert torch.autograd.gradgradcheck(lambda x, last, shares: blend(x, last, *shares), (x, last, shares))
