"""What somebody forgets who writes a mixer meets a sentence, at every batch size."""

import pytest
import torch
from torch import nn as torch_nn

from wonderland.core import WonderlandError
from wonderland.models import Decoder
from wonderland.nn import CrossMixer, Mixer, Pointwise, Slot


class RunningSum(Mixer):
    """The sum of all tokens so far; `answer` is what `mix` makes of the outputs and the state."""

    def __init__(self, dim: int, *, answer: str = "right", causal: bool = True):
        super().__init__()
        self.dim, self.answer, self.causal = dim, answer, causal

    def layout(self):
        return (Slot((self.dim,)),)

    def mix(self, x, state, seen, mask):
        y = x.cumsum(1) if state is None else x.cumsum(1) + state[0].unsqueeze(1)
        last = y[:, -1]
        return {
            "right": (y, (last,)),
            "no state": y,
            "three": (y, last, last),
            "a list": [y, (last,)],
            "bare tensor": (y, last),
            "nested": (y, ((last,),)),
            "none": (y, None),
            "empty": (y, ()),
            "wide": (y, (torch.cat([last, last], 1),)),
            "one row": (y, (last[:1].squeeze(0),)),
            "whole numbers": (y, (last.long(),)),
            "short": (y[:, :-1], (last,)),
            "no outputs": ((last,), (last,)),
        }[self.answer]


RETURNS = "RunningSum.mix returns its outputs and its state, as in `return y, (h,)`, not"
STATE = "RunningSum.mix returns a state that its layout does not describe:"
SENTENCES = {
    "no state": lambda b: f"{RETURNS} a Tensor.",
    "three": lambda b: f"{RETURNS} a tuple of 3.",
    "a list": lambda b: f"{RETURNS} a list.",
    "bare tensor": lambda b: f"{STATE} its state is a Tensor where a tuple of 1 belongs.",
    "nested": lambda b: f"{STATE} entry 0 is a tuple where a tensor belongs.",
    "none": lambda b: f"{STATE} its state is a NoneType where a tuple of 1 belongs.",
    "empty": lambda b: f"{STATE} its state is a tuple of 0 where a tuple of 1 belongs.",
    "wide": lambda b: f"{STATE} entry 0 has shape ({b}, 6) where ({b}, 3) belongs.",
    "one row": lambda b: f"{STATE} entry 0 has shape (3,) where ({b}, 3) belongs.",
    "whole numbers": lambda b: f"{STATE} entry 0 holds torch.int64 where floating point belongs.",
    "short": lambda b: (
        f"RunningSum.mix returns outputs of the shape of its input, ({b}, 5, 3), not of shape ({b}, 4, 3)."
    ),
    "no outputs": lambda b: f"RunningSum.mix returns outputs of the shape of its input, ({b}, 5, 3), not a tuple.",
}


@pytest.mark.parametrize("batch", [1, 2, 3])
@pytest.mark.parametrize("answer", sorted(SENTENCES))
def test_a_wrong_answer_of_mix_is_refused_at_every_batch_size(answer, batch):
    mixer, x = RunningSum(3, answer=answer), torch.randn(batch, 5, 3)
    for call in (mixer, mixer.stream):
        with pytest.raises(WonderlandError) as caught:
            call(x)
        assert str(caught.value) == SENTENCES[answer](batch)


def test_the_right_answer_passes():
    x = torch.randn(2, 5, 3)
    assert torch.equal(RunningSum(3)(x), x.cumsum(1))


def test_a_mixer_that_is_not_causal_has_the_empty_state():
    with pytest.raises(WonderlandError) as caught:
        RunningSum(3, causal=False)(torch.randn(2, 5, 3))
    assert str(caught.value) == f"{STATE} its state is a tuple of 1 where a tuple of 0 belongs."
    assert RunningSum(3, answer="empty", causal=False)(torch.randn(2, 5, 3)).shape == (2, 5, 3)


def test_a_wrong_answer_is_refused_inside_a_model():
    model = Decoder(vocab=9, dim=4, depth=1, mixer=RunningSum.spec(answer="no state"))
    with pytest.raises(WonderlandError) as caught:
        model(torch.zeros(2, 5, dtype=torch.int64))
    assert str(caught.value) == f"{RETURNS} a Tensor."


def test_a_pointwise_part_keeps_the_shape():
    class Halves(Pointwise):
        def __init__(self, dim: int):
            super().__init__()
            self.dim = dim

        def apply_to(self, x):
            return x[..., : self.dim // 2]

    with pytest.raises(WonderlandError) as caught:
        Halves(4)(torch.randn(2, 5, 4))
    sentence = "Halves.apply_to returns outputs of the shape of its input, (2, 5, 4), not of shape (2, 5, 2)."
    assert str(caught.value) == sentence


def test_a_forgotten_dim_meets_a_sentence():
    class Forgetful(Mixer):
        def __init__(self, dim: int):
            super().__init__()
            self.linear = torch_nn.Linear(dim, dim)

        def mix(self, x, state, seen, mask):
            return self.linear(x), ()

    class ForgetfulReader(CrossMixer):
        def __init__(self, dim: int):
            super().__init__()
            self.dim = dim

    sentence = "Forgetful has no dim: its __init__ sets it, as in self.dim = dim."
    for call in (Forgetful(4), Forgetful(4).stream):
        with pytest.raises(WonderlandError) as caught:
            call(torch.randn(2, 5, 4))
        assert str(caught.value) == sentence
    with pytest.raises(WonderlandError) as caught:
        ForgetfulReader(4)(torch.randn(2, 5, 4), torch.randn(2, 5, 4))
    assert (
        str(caught.value)
        == "ForgetfulReader has no context_dim: its __init__ sets it, as in self.context_dim = context_dim."
    )
