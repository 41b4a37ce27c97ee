"""The decoder with any mixer inside."""

import importlib
import pkgutil

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import wonderland.nn
from wonderland.core import Spec, WonderlandError, find, load_tensors, parts, save_tensors
from wonderland.generation import sample
from wonderland.laws import Example, compiles
from wonderland.models.costs import cost_table
from wonderland.models.decoder import Decoder
from wonderland.nn.channel.glu import GLU
from wonderland.nn.channel.mlp import MLP
from wonderland.nn.contract.mixer import Mixer
from wonderland.nn.contract.state import rows
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.mixers.mamba import Mamba
from wonderland.nn.mixers.pooling import Pooling
from wonderland.nn.mixers.rwkv import RWKV, RWKVChannel
from wonderland.nn.mixers.shift import Shift
from wonderland.nn.norms.norm import LayerNorm, RMSNorm
from wonderland.nn.positions import Alibi, Learned, Rotary, Sinusoidal
from wonderland.ship.store import load_model, save_model

for module in pkgutil.walk_packages(wonderland.nn.__path__, "wonderland.nn."):
    importlib.import_module(module.name)


def mixers() -> list[str]:
    """Every causal mixer that is built from its width alone."""
    actual = []
    for name in parts():
        thing = find(name)
        if not (name.startswith("nn.") and isinstance(thing, type) and issubclass(thing, Mixer)):
            continue
        try:
            causal = thing(dim=8).causal
        except TypeError:
            continue
        if causal:
            actual.append(name)
    return actual


def ragged(b: int, t: int) -> torch.Tensor:
    return torch.arange(t) < torch.tensor([t, *range(1, b)]).unsqueeze(1)


def streamed(model: Decoder, tokens: torch.Tensor, cuts: list[int], mask: torch.Tensor | None = None) -> torch.Tensor:
    pieces, state = [], None
    for start, end in zip([0, *cuts], [*cuts, tokens.shape[1]], strict=True):
        y, state = model.stream(tokens[:, start:end], state, None if mask is None else mask[:, start:end])
        pieces.append(y)
    return torch.cat(pieces, 1)


@pytest.mark.parametrize("name", mixers())
def test_any_causal_mixer_goes_inside(name):
    model = Decoder(vocab=11, dim=8, depth=2, mixer=Spec(name)).double().eval()
    tokens = torch.randint(11, (3, 7))
    whole = model(tokens)
    assert torch.allclose(streamed(model, tokens, [1, 2, 5]), whole, atol=1e-8)
    mask = ragged(3, 7)
    masked = model(tokens, mask)
    assert torch.allclose(streamed(model, tokens, [1, 2, 5], mask), masked, atol=1e-8)
    assert torch.allclose(masked[mask], whole[mask], atol=1e-8)


def test_it_is_embedding_stack_and_head():
    model = Decoder(vocab=11, dim=8, depth=2, position=Sinusoidal.spec(), mixer=Attention.spec())
    tokens = torch.randint(11, (2, 5))
    h = model.embedding(tokens) + model.position.embed(torch.arange(5).unsqueeze(0))
    assert torch.allclose(model(tokens), model.stack(h) @ model.embedding.weight.T, atol=1e-6)


def test_defaults_by_mixer():
    assert isinstance(Decoder(vocab=5).stack.blocks[0].channel, MLP)
    assert isinstance(Decoder(vocab=5).stack.blocks[0].mixer.position, Rotary)
    assert Decoder(vocab=5, dim=6).stack.blocks[0].mixer.heads == 3
    assert Decoder(vocab=5, mixer=Mamba.spec()).stack.blocks[0].channel is None
    assert Decoder(vocab=5, mixer=Shift.spec(), channel=False).stack.blocks[0].channel is None
    forced = Decoder(vocab=5, mixer=Mamba.spec(), channel=GLU.spec())
    assert isinstance(forced.stack.blocks[0].channel, GLU)


def test_a_list_of_mixers_is_repeated():
    model = Decoder(vocab=5, dim=8, depth=3, mixer=[Mamba.spec(), Attention.spec()])
    assert [type(block.mixer).__name__ for block in model.stack.blocks] == ["Mamba", "Attention", "Mamba"]
    assert [block.channel is None for block in model.stack.blocks] == [True, False, True]


def test_a_channel_mixer_with_a_state():
    model = Decoder(vocab=5, dim=8, depth=2, mixer=RWKV.spec(), channel=RWKVChannel.spec()).double()
    tokens, mask = torch.randint(5, (3, 6)), ragged(3, 6)
    assert torch.allclose(streamed(model, tokens, [2, 3], mask), model(tokens, mask), atol=1e-10)


def test_the_norm_ends_the_stack_where_it_stands_before():
    assert isinstance(Decoder(vocab=5, dim=8, norm=RMSNorm.spec()).stack.norm, RMSNorm)
    assert isinstance(Decoder(vocab=5, dim=8).stack.norm, LayerNorm)
    assert Decoder(vocab=5, dim=8, placement="post", norm=RMSNorm.spec()).stack.norm is None


@pytest.mark.parametrize("position", [None, Learned.spec(length=7), Sinusoidal.spec()])
def test_padding_may_stand_on_either_side(position):
    model = Decoder(vocab=11, dim=8, depth=2, mixer=Attention.spec(), position=position).double()
    tokens = torch.randint(11, (3, 7))
    mask = torch.tensor([[False] * 2 + [True] * 5, [True] * 3 + [False] * 4, [False] + [True] * 2 + [False] * 4])
    wild = tokens.masked_fill(~mask, -100)
    logits = model(wild, mask)
    for row, (start, end) in enumerate([(2, 7), (0, 3), (1, 3)]):
        assert torch.allclose(logits[row, start:end], model(tokens[row : row + 1, start:end])[0])
    assert (logits[~mask] == 0).all()


def test_a_left_padded_prompt_is_continued():
    model = Decoder(vocab=11, dim=8, depth=2).double()
    tokens = torch.randint(11, (2, 6))
    mask = torch.tensor([[True] * 4, [False] * 2 + [True] * 2])
    _, state = model.stream(tokens[:, :4], None, mask)
    y, state = model.stream(tokens[:, 4:], state)
    assert torch.allclose(y[1], model(tokens[1:, 2:])[0, 2:])
    assert state[0].tolist() == [6, 4]


def test_gradients_of_pieces_are_those_of_the_whole():
    model = Decoder(vocab=11, dim=8, depth=2).double()
    tokens = torch.randint(11, (2, 6))
    weight = torch.randn(2, 6, 11, dtype=torch.float64)
    parameters = list(model.parameters())
    expected = torch.autograd.grad((model(tokens) * weight).sum(), parameters)
    actual = torch.autograd.grad((streamed(model, tokens, [1, 4]) * weight).sum(), parameters)
    for a, b in zip(expected, actual, strict=True):
        assert torch.allclose(a, b)


def test_a_state_can_be_continued_twice_and_reordered():
    model = Decoder(vocab=11, dim=8, depth=2).double()
    tokens = torch.randint(11, (2, 5))
    _, state = model.stream(tokens[:, :4])
    first, _ = model.stream(tokens[:, 4:], state)
    again, _ = model.stream(tokens[:, 4:], state)
    assert torch.equal(first, again)
    turned, _ = model.stream(tokens[:, 4:].flip(0), rows(state, torch.tensor([1, 0])))
    assert torch.allclose(turned, first.flip(0))


def test_start_is_the_beginning():
    model = Decoder(vocab=11, dim=8, depth=2, mixer=RWKV.spec())
    tokens = torch.randint(11, (2, 5))
    assert torch.allclose(model.stream(tokens, model.start(2))[0], model(tokens), atol=1e-6)


def test_greedy_sampling_takes_the_most_likely():
    model = Decoder(vocab=11, dim=8, depth=2, dropout=0.3)
    tokens = torch.randint(11, (2, 4))
    written = sample(model, tokens, 6, temperature=0)
    assert model.training
    model.eval()
    for step in range(6):
        text = torch.cat([tokens, written[:, :step]], 1)
        assert torch.equal(model(text)[:, -1].argmax(-1), written[:, step])


def test_sampling_is_repeated_by_its_generator():
    model = Decoder(vocab=11, dim=8, depth=2, mixer=Pooling.spec())
    tokens = torch.randint(11, (2, 4), dtype=torch.int32)
    first, again = (sample(model, tokens, 9, generator=torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(first, again)
    assert first.dtype == torch.int32
    assert first.shape == (2, 9)


def test_it_learns():
    """A repeating text is learned by heart in a few steps."""
    tokens = torch.tensor([[1, 2, 3, 1, 2, 4] * 4])
    model = Decoder(vocab=5, dim=16, depth=2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(60):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
    assert loss < 0.2
    assert sample(model, tokens[:, :6], 6, temperature=0).tolist() == [[1, 2, 3, 1, 2, 4]]


@pytest.mark.parametrize("tie", [True, False])
def test_a_saved_decoder_gives_the_same_bits(tmp_path, tie):
    spec = Decoder.spec(vocab=11, dim=8, depth=2, mixer=[Attention.spec(position=Alibi.spec()), Mamba.spec()], tie=tie)
    model = spec.build().eval()
    tokens = torch.randint(11, (2, 5))
    expected = model(tokens)
    again = Spec.from_json(spec.to_json())
    save_model(tmp_path, model, {})
    assert torch.equal(load_model(tmp_path, again)(tokens), expected)
    save_tensors(tmp_path / "weights.safetensors", model.state_dict(), {})
    rebuilt = again.build().eval()
    rebuilt.load_state_dict(load_tensors(tmp_path / "weights.safetensors")[0])
    assert torch.equal(rebuilt(tokens), expected)


def test_a_tied_head_is_one_matrix():
    count = {tie: sum(p.numel() for p in Decoder(vocab=11, dim=8, tie=tie).parameters()) for tie in (True, False)}
    assert count[False] - count[True] == 11 * 8


def test_costs_are_those_of_the_formulas():
    model = Decoder(vocab=65, dim=16, depth=2, mixer=Attention.spec(heads=2))
    layer = 3 * 16 * 16 + 16 * 16 + 2 * 4 * 16 * 16
    assert model.costs(100) == {
        "parameters": sum(p.numel() for p in model.parameters()),
        "state": 2 * 100 * 2 * 16,
        "multiply_adds": 2 * (layer + 101 * 2 * 16) + 16 * 65,
    }
    assert model.costs(100)["state"] == model.state_numbers(100)


def test_a_recurrent_state_does_not_grow():
    for mixer in (Mamba.spec(), RWKV.spec(), Pooling.spec(), Shift.spec()):
        model = Decoder(vocab=65, dim=16, depth=2, mixer=mixer)
        assert model.costs(10)["state"] == model.costs(50)["state"] == model.state_numbers(10) > 0


def test_a_table_of_costs():
    models = {
        "attention": Decoder(vocab=65, dim=16, depth=2, mixer=Attention.spec(heads=2)),
        "shift": Decoder(vocab=65, dim=16, depth=2, mixer=Shift.spec()),
    }
    assert cost_table(models, 1000).splitlines() == [
        "           parameters  state after 1,000 tokens  multiply-adds a token",
        "attention       7,344                    64,000                 71,248",
        "shift           5,296                        16                  5,136",
    ]


class InPieces(nn.Module):
    """A decoder that streams two pieces, as one function."""

    def __init__(self, model: Decoder):
        super().__init__()
        self.model = model

    def forward(self, tokens):
        first, state = self.model.stream(tokens[:, :4])
        return torch.cat([first, self.model.stream(tokens[:, 4:], state)[0]], 1)


def test_it_compiles_with_masks():
    model = Decoder(vocab=11, dim=8, depth=1).eval()
    tokens, mask = torch.randint(11, (2, 5)), torch.tensor([[True] * 5, [False, True, True, True, False]])
    assert compiles(model, Example((tokens,), {"mask": mask})).outcome == "holds"


@pytest.mark.slow
def test_it_compiles_in_pieces():
    tokens = torch.randint(11, (2, 5))
    assert compiles(InPieces(Decoder(vocab=11, dim=8, depth=1).eval()), tokens).outcome == "holds"


SMALL = {"vocab": 11, "dim": 8, "depth": 1}
TOKENS = torch.zeros(2, 3, dtype=torch.int64)


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (
            lambda: Decoder(**SMALL)(torch.tensor([[1, 11]])),
            "Token 11 in row 0, position 1 is not in the vocabulary: tokens are 0 to 10.",
        ),
        (
            lambda: Decoder(**SMALL).stream(torch.tensor([[1], [-1]])),
            "Token -1 in row 1, position 0 is not in the vocabulary: tokens are 0 to 10.",
        ),
        (
            lambda: Decoder(**SMALL)(torch.zeros(2, 0, dtype=torch.int64)),
            "A Decoder takes tokens (batch, time) with at least one row and one position, not a value of shape (2, 0).",
        ),
        (
            lambda: Decoder(**SMALL).check([1, 2], None),
            "A Decoder takes tokens (batch, time) with at least one row and one position, not a value of type list.",
        ),
        (
            lambda: Decoder(**SMALL)(torch.zeros(2, 3)),
            "A Decoder takes tokens as whole numbers (int64 or int32), not torch.float32.",
        ),
        (
            lambda: Decoder(**SMALL)(TOKENS, torch.ones(2, 3)),
            "A Decoder takes a mask of booleans (2, 3), True where a token is real, not torch.float32 (2, 3).",
        ),
        (
            lambda: Decoder(**SMALL)(TOKENS, torch.tensor([[True, True, True], [True, False, True]])),
            "The mask has a gap in row 1: real tokens must be consecutive, with padding before or after them.",
        ),
        (
            lambda: Decoder(**SMALL)(TOKENS, torch.tensor([[True, True, True], [False, False, False]])),
            "Decoder got a mask whose row 1 has no real token: leave empty sequences out of the batch.",
        ),
        (
            lambda: Decoder(**SMALL, mixer=Shift.spec()).stream(TOKENS, (torch.zeros(2, dtype=torch.int64), ())),
            "The state does not fit this Decoder: entry 1 is a tuple of 0 where a tuple of 1 belongs. "
            "A state belongs to the model and the batch that made it; state=None starts a new sequence.",
        ),
        (
            lambda: Decoder(**SMALL, mixer=Shift.spec()).stream(TOKENS, Decoder(**SMALL, mixer=Shift.spec()).start(1)),
            "The state does not fit this Decoder: entry 0 is for 1 rows and the input has 2. "
            "A state belongs to the model and the batch that made it; state=None starts a new sequence.",
        ),
        (
            lambda: Decoder(**SMALL, mixer=Attention.spec(causal=False)),
            "A Decoder needs causal mixers, and Attention is not causal here: give a causal one.",
        ),
        (
            lambda: Decoder(**SMALL, position=Rotary.spec()),
            "nn.Rotary cannot be added to an embedding: put it into the mixer's spec, "
            "as in nn.Attention.spec(position=nn.Rotary.spec()).",
        ),
        (
            lambda: Decoder(**SMALL, norm=[]),
            "A Decoder repeats its mixers and norms together after 1 to 10,000 layers, not 0.",
        ),
        (
            lambda: Decoder(vocab=0),
            "A Decoder needs at least one token and one feature, not vocab=0, dim=128.",
        ),
        (
            lambda: Decoder(vocab=5, dim=7),
            "The default mixer of a Decoder rotates pairs of features, so dim has to be even, not 7: "
            "choose another dim or give a mixer.",
        ),
        (
            lambda: sample(Decoder(**SMALL), TOKENS, 0),
            "Sampling takes at least one step and a temperature of at least 0, not 0 and 1.0.",
        ),
        (
            lambda: Decoder(**SMALL).costs(0),
            "The cost of a step is counted after at least one token, not after 0.",
        ),
    ],
)
def test_what_does_not_fit_is_told(run, words):
    with pytest.raises(WonderlandError) as error:
        run()
    assert str(error.value) == words


def test_layers_may_have_norms_of_their_own_and_the_embedding_one():
    norms = [LayerNorm.spec(eps=eps) for eps in (1e-5, 1e-3)]
    how = {"norm": norms, "final_norm": LayerNorm.spec(eps=0.5), "embed_norm": LayerNorm.spec(), "embed_dropout": 0.5}
    model = Decoder(vocab=5, dim=8, depth=4, **how)
    assert [block.norms[0].eps for block in model.stack.blocks] == [1e-5, 1e-3, 1e-5, 1e-3]
    assert model.stack.norm.eps == 0.5
    assert model.stack.blocks[0].dropout == 0.0
    tokens = torch.tensor([[1, 2, 3, 4]])
    assert not torch.equal(model(tokens), model(tokens))
    model.eval()
    with torch.no_grad():
        assert torch.allclose(streamed(model, tokens, [1, 2, 3]), model(tokens), atol=1e-6)


def test_embeddings_are_scaled_and_logits_have_a_bias_and_a_bound():
    model = Decoder(vocab=11, dim=8, depth=1, tie=False, head_bias=True, embed_scale=3.0, logit_cap=0.5).eval()
    torch.nn.init.normal_(model.head.bias)
    tokens = torch.randint(11, (2, 5))
    h = model.stack(3.0 * model.embedding(tokens))
    expected = 0.5 * torch.tanh((h @ model.head.weight.t() + model.head.bias) / 0.5)
    torch.testing.assert_close(model(tokens), expected)
    with torch.no_grad():
        torch.testing.assert_close(streamed(model, tokens, [1, 2, 3, 4]), expected)
    for given, words in (
        (
            {"head_bias": True},
            "A Decoder with tie=True has no bias at its head: give tie=False, or leave head_bias out.",
        ),
        ({"logit_cap": 0}, "A Decoder bounds its logits by a logit_cap above 0, not 0."),
    ):
        with pytest.raises(WonderlandError) as error:
            Decoder(vocab=11, dim=8, depth=1, **given)
        assert str(error.value) == words
