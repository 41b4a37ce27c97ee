"""Additive attention: a small network scores each pair."""

import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.nn.mixers.additive_attention import AdditiveAttention, AdditiveSelfAttention


def test_it_is_the_equation():
    mixer = AdditiveAttention(4, context_dim=6, hidden=5)
    x, context = torch.randn(1, 3, 4), torch.randn(1, 7, 6)
    scores = torch.zeros(3, 7)
    for i in range(3):
        for j in range(7):
            hidden = torch.tanh(mixer.query.weight @ x[0, i] + mixer.key.weight @ context[0, j])
            scores[i, j] = mixer.score.weight[0] @ hidden
    expected = scores.softmax(-1) @ context[0] @ mixer.out.weight.t()
    assert torch.allclose(mixer(x, context)[0], expected, atol=1e-6)


def test_a_context_of_the_same_width_is_not_projected():
    mixer = AdditiveAttention(4, hidden=5)
    torch.nn.init.zeros_(mixer.score.weight)
    context = torch.randn(1, 7, 4)
    assert torch.allclose(mixer(torch.randn(1, 3, 4), context), context.mean(1, keepdim=True).expand(1, 3, 4))


def test_valid_lengths_of_the_book():
    """The example of D2L 11.3: equal keys make the mean of the valid values, which count up in steps of 4."""
    mixer = AdditiveAttention(4, hidden=8)
    torch.nn.init.zeros_(mixer.key.weight)
    values = torch.arange(40.0).reshape(1, 10, 4).repeat(2, 1, 1)
    mask = torch.arange(10) < torch.tensor([[2], [6]])
    y = mixer(torch.randn(2, 1, 4), values, context_mask=mask)
    assert torch.allclose(y, torch.tensor([[[2.0, 3.0, 4.0, 5.0]], [[10.0, 11.0, 12.0, 13.0]]]))


def test_the_causal_form_is_the_cross_form_on_each_prefix():
    own, cross = AdditiveSelfAttention(4, hidden=5), AdditiveAttention(4, hidden=5)
    for name in ("query", "key", "score"):
        getattr(cross, name).load_state_dict(getattr(own, name).state_dict())
    x = torch.randn(2, 6, 4)
    for i in range(6):
        expected = cross(x[:, i : i + 1], x[:, : i + 1]) @ own.out.weight.t()
        assert torch.allclose(own(x)[:, i : i + 1], expected, atol=1e-6)


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (
            lambda: AdditiveAttention(4, hidden=0),
            "AdditiveAttention cannot be built with dim=4, context_dim=4, hidden=0: all are whole numbers from 1.",
        ),
        (
            lambda: AdditiveSelfAttention(0),
            "AdditiveSelfAttention needs a dim, the width of its tokens, of at least 1, not 0.",
        ),
    ],
)
def test_errors_say_what_to_do(build, sentence):
    with pytest.raises(WonderlandError) as error:
        build()
    assert str(error.value) == sentence
