"""Hard attention: the limit of the soft one, with the gradient it has or the one it pretends."""

import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.mixers.hard_attention import HardAttention


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("straight_through", [False, True])
def test_soft_attention_with_ever_larger_scores_becomes_hard(causal, straight_through):
    hard = HardAttention(8, heads=2, causal=causal, straight_through=straight_through).double()
    soft = Attention(8, heads=2, causal=causal, scale=1e6).double()
    soft.load_state_dict(hard.state_dict())
    x = torch.randn(2, 9, 8, dtype=torch.float64)
    assert torch.allclose(soft(x), hard(x), atol=1e-9)


def test_each_token_takes_the_value_of_the_best_key():
    mixer = HardAttention(2, heads=1, causal=False)
    mixer.project.load_state_dict({"weight": torch.eye(2).repeat(3, 1)})
    torch.nn.init.eye_(mixer.out.weight)
    x = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [3.0, 0.1]]])
    assert mixer(x)[0].tolist() == [x[0, 2].tolist(), x[0, 1].tolist(), x[0, 2].tolist()]


def test_the_choice_has_no_gradient_unless_it_is_let_through():
    for straight_through in (False, True):
        mixer = HardAttention(8, heads=2, straight_through=straight_through)
        mixer(torch.randn(2, 9, 8)).square().sum().backward()
        grad = mixer.project.weight.grad
        assert (grad[:16].abs().max() > 0) == straight_through
        assert grad[16:].abs().max() > 0


def test_straight_through_has_the_gradient_of_the_softmax():
    hard, soft = HardAttention(8, heads=1, causal=False, straight_through=True), Attention(8, heads=1, causal=False)
    soft.load_state_dict(hard.state_dict())
    x, weight = torch.randn(1, 5, 8), torch.randn(1, 5, 8)
    grads = [torch.autograd.grad((mixer(x) * weight).sum(), mixer.project.weight)[0][:16] for mixer in (hard, soft)]
    assert torch.allclose(*grads, atol=1e-5)


def test_heads_that_do_not_divide_are_told():
    with pytest.raises(WonderlandError) as error:
        HardAttention(8, heads=3)
    assert str(error.value) == (
        "HardAttention cannot be built with dim=8, heads=3: heads divides dim, unless key_dim and value_dim are given."
    )
