"""Linear attention and its feature maps: the definition, its first output, and softmax attention in the mean."""

import re

import pytest
import torch
import torch.nn.functional as F

from wonderland.core import WonderlandError
from wonderland.nn.mixers.feature_maps import EluPlusOne, ExpFeatures, RandomFeatures, ReluFeatures
from wonderland.nn.mixers.linear_attention import LinearAttention


def parts(mixer, x):
    q, k, v = mixer.qkv(x).view(*x.shape[:2], 3, mixer.heads, -1).permute(2, 0, 3, 1, 4)
    return mixer.feature_map(q), mixer.feature_map(k), v


@pytest.mark.parametrize("causal", [True, False])
def test_it_is_attention_with_a_factorised_similarity(causal):
    mixer = LinearAttention(8, heads=2, causal=causal).double()
    x = torch.randn(2, 7, 8, dtype=torch.float64)
    q, k, v = parts(mixer, x)
    scores = q @ k.mT
    scores = scores.tril() if causal else scores
    h = (scores / scores.sum(-1, keepdim=True)) @ v
    assert torch.allclose(mixer(x), mixer.out(h.transpose(1, 2).reshape(2, 7, 8)))


def test_the_first_output_is_the_first_value():
    mixer = LinearAttention(8, heads=2).double()
    x = torch.randn(1, 3, 8, dtype=torch.float64)
    _, _, v = parts(mixer, x)
    assert torch.allclose(mixer(x)[:, 0], mixer.out(v[:, :, 0].reshape(1, 8)))


def test_the_state_is_constant_in_time():
    mixer = LinearAttention(8, heads=2)
    assert mixer.state_numbers(1) == mixer.state_numbers(999) == 2 * 4 * 5


def test_random_features_approach_the_exponential_of_attention():
    x, y = torch.randn(2, 5, 4, dtype=torch.float64)
    feature_map = RandomFeatures(4, features=40_000).double()
    found = (feature_map(x) * feature_map(y)).sum(-1)
    assert torch.allclose(found, torch.exp((x * y).sum(-1) / 2), rtol=0.1)


@pytest.mark.parametrize("kind", [EluPlusOne, ReluFeatures, ExpFeatures, RandomFeatures])
def test_features_are_never_negative(kind):
    assert (kind(6)(10 * torch.randn(50, 6)) >= 0).all()


def test_a_query_that_meets_no_key_gives_zero():
    mixer = LinearAttention(4, heads=1, feature_map=ReluFeatures.spec())
    with torch.no_grad():
        mixer.qkv.weight.copy_(torch.cat([torch.eye(4), -torch.eye(4), torch.eye(4)]))
    assert torch.equal(mixer(torch.ones(1, 3, 4)), torch.zeros(1, 3, 4))


def test_elu_plus_one_is_as_published():
    x = torch.tensor([-1.0, 0.0, 2.0])
    assert torch.equal(EluPlusOne(3)(x), F.elu(x) + 1)


def test_heads_must_share_the_width():
    message = "LinearAttention shares dim=8 between heads=3: choose heads that divide dim."
    with pytest.raises(WonderlandError, match=re.escape(message)):
        LinearAttention(8, heads=3)
