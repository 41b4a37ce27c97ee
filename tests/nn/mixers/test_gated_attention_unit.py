"""The gated attention unit against its equation, and what it cannot be."""

import math

import pytest
import torch
import torch.nn.functional as F

from wonderland.core import WonderlandError
from wonderland.models import Decoder
from wonderland.nn import GatedAttentionUnit, Learned, RelativeBias, Rotary


@pytest.mark.parametrize("causal", [True, False])
def test_it_is_the_equation(causal):
    mixer = GatedAttentionUnit(6, key_dim=4, causal=causal, position=RelativeBias.spec(length=4)).double()
    with torch.no_grad():
        mixer.position.weight.normal_()
        mixer.shift.normal_()
    x = torch.randn(5, 6, dtype=torch.float64)
    u, v, z = F.silu(x @ mixer.inward.weight.T).split([12, 12, 4], 1)
    q, k = (z * mixer.gain[row] + mixer.shift[row] for row in (0, 1))
    y = torch.zeros(5, 12, dtype=torch.float64)
    for i in range(5):
        seen = range(i + 1) if causal else range(5)
        for j in seen:
            bias = mixer.position.weight[min(max(i - j, -3), 3) + 3, 0]
            y[i] += max(0.0, q[i] @ k[j] / math.sqrt(4) + bias) ** 2 * v[j] / len(seen)
    torch.testing.assert_close(mixer(x[None])[0], (u * y) @ mixer.outward.weight.T)
    torch.testing.assert_close(u * (mixer.maps(x[None])[0, 0] @ v), u * y)


def test_it_is_a_block_in_itself():
    model = Decoder(vocab=9, dim=8, depth=2, mixer=GatedAttentionUnit.spec(key_dim=4, position=Rotary.spec()))
    assert model.stack.blocks[0].channel is None
    tokens = torch.randint(9, (2, 7))
    head, state = model.stream(tokens[:, :3])
    tail, _ = model.stream(tokens[:, 3:], state)
    torch.testing.assert_close(torch.cat([head, tail], 1), model(tokens))


def test_a_position_that_embeds_is_refused():
    with pytest.raises(WonderlandError) as error:
        GatedAttentionUnit(8, position=Learned.spec())
    assert str(error.value) == (
        "GatedAttentionUnit cannot use nn.Learned as its position: it takes one that rotates or biases "
        "(Rotary, Alibi, RelativeBias, RelativeBuckets)."
    )
