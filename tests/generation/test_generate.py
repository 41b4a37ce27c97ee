"""One generator for every model and mixer: rows among others are rows alone, and nothing outside changes."""

import numpy as np
import pytest
import torch
from torch import nn

from tests.models.test_decoder import mixers
from wonderland import generation
from wonderland.checkpoints import from_gpt2
from wonderland.core import Spec, WonderlandError
from wonderland.generation import generate, write
from wonderland.models import Decoder
from wonderland.nn.contract.state import over
from wonderland.nn.positions import Learned

PROMPTS = [[1, 2, 3, 4, 5], [6], [7, 8, 9], [10, 1, 0, 3]]
SETTINGS = [
    {"temperature": 0},
    {"temperature": 0.7, "top_k": 5, "top_p": 0.9, "min_p": 0.01},
    {"typical": 0.7, "repetition_penalty": 1.4},
]


def decoder(mixer: str = "nn.Attention", **more) -> Decoder:
    """A model whose next token is neither certain nor left to chance."""
    model = Decoder(vocab=11, dim=8, depth=2, mixer=Spec(mixer), **more).double()
    with torch.no_grad():
        model.embedding.weight.mul_(60)
    return model


FEW = ["nn.Attention", "nn.Mamba"]


@pytest.mark.parametrize(
    "mixer", [pytest.param(name, marks=[] if name in FEW else pytest.mark.slow) for name in mixers()]
)
def test_a_row_among_others_is_the_row_alone(mixer):
    model = decoder(mixer)
    for settings in SETTINGS:
        together = generate(model, PROMPTS, 9, seed=3, stop=[0], **settings)
        for row, prompt in enumerate(PROMPTS):
            alone = generate(model, [prompt], 9, seed=3, rows=[row], stop=[0], **settings)
            assert alone.tokens == together.tokens[row : row + 1]
            assert alone.ended == together.ended[row : row + 1]


def test_rows_end_apart():
    written = generate(decoder(), PROMPTS * 3, 40, stop=[0, 4])
    assert {"stop", "count"} >= set(written.ended)
    assert len(set(map(len, written.tokens))) > 2
    assert not any({0, 4} & set(tokens) for tokens in written.tokens)


def test_each_token_is_drawn_from_what_the_whole_text_says():
    model = decoder("nn.GRU")
    sampling = generation.Sampling(temperature=0.8, top_k=4)
    written = generate(model, PROMPTS, 6, temperature=0.8, top_k=4).tokens
    for prompt, tokens in zip(PROMPTS, written, strict=True):
        for step, token in enumerate(tokens):
            logits = model(torch.tensor([prompt + tokens[:step]]))[:, -1]
            assert sampling.probabilities(logits)[0, token] > 0


def test_frequencies_are_those_of_the_model():
    """2,000 rows of one step, against the exact distribution, by a chi-square statistic."""
    model = decoder()
    sampling = generation.Sampling(temperature=1.5, top_p=0.95)
    chances = sampling.probabilities(model(torch.tensor([[1, 2]]))[0, -1])
    written = generate(model, torch.tensor([[1, 2]]).expand(2_000, 2), 1, temperature=1.5, top_p=0.95).tokens
    counts = torch.bincount(torch.tensor(written).flatten(), minlength=11)
    assert (counts[chances == 0] == 0).all()
    kept = chances > 0
    expected = 2_000 * chances[kept]
    assert kept.sum() > 3
    assert ((counts[kept] - expected) ** 2 / expected).sum() < 30  # at most ten degrees of freedom: 1 in 1,000


def test_padding_may_stand_on_either_side():
    model = decoder()
    lists = generate(model, [[1, 2, 3], [4]], 7).tokens
    for tokens, mask in (
        ([[1, 2, 3], [9, 9, 4]], [[True] * 3, [False, False, True]]),
        ([[1, 2, 3], [4, 9, 9]], [[True] * 3, [True, False, False]]),
        ([[1, 2, 3], [9, 4, 9]], [[True] * 3, [False, True, False]]),
    ):
        assert generate(model, torch.tensor(tokens), 7, mask=torch.tensor(mask)).tokens == lists


@pytest.mark.parametrize("prompts", [[[3, 1, 4, 1, 5]], [[3, 1, 4, 1, 5], [2, 7, 1, 8, 2]]])
def test_greedy_text_is_that_of_transformers(prompts):
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(2)
    config = GPT2Config(vocab_size=40, n_positions=32, n_embd=16, n_layer=2, n_head=2)
    theirs = GPT2LMHeadModel(config).double().eval()
    with torch.no_grad():
        theirs.transformer.wte.weight.mul_(30)
    tokens = torch.tensor(prompts)
    options = {"do_sample": False, "eos_token_id": None, "pad_token_id": 0, "max_new_tokens": 20}
    expected = theirs.generate(tokens, attention_mask=torch.ones_like(tokens), **options)
    actual = generate(from_gpt2(theirs), tokens, 20, temperature=0)
    assert actual.tokens == expected[:, 5:].tolist()
    penalised = theirs.generate(tokens, attention_mask=torch.ones_like(tokens), repetition_penalty=1.7, **options)
    actual = generate(from_gpt2(theirs), tokens, 20, temperature=0, repetition_penalty=1.7)
    assert actual.tokens == penalised[:, 5:].tolist()


def test_a_given_state_is_continued_and_not_written_to():
    model = decoder()
    with torch.no_grad():
        _, state = model.stream(torch.tensor([[1, 2], [3, 4]]))
    before = over(state, lambda tensor: tensor.clone())
    rest = generate(model, [[5], [6]], 8, state=state).tokens
    assert rest == generate(model, [[1, 2, 5], [3, 4, 6]], 8).tokens
    assert rest == generate(model, [[5], [6]], 8, state=state).tokens
    over((state, before), lambda tensor: tensor)
    for a, b in zip(_flat(state), _flat(before), strict=True):
        assert torch.equal(a, b)


def _flat(state):
    return [tensor for entry in state for tensor in (_flat(entry) if isinstance(entry, tuple) else [entry])]


def test_mode_gradients_and_random_numbers_of_the_caller_stay():
    model = decoder(dropout=0.5)
    model.stack.blocks[0].eval()
    modes = [module.training for module in model.modules()]
    before = torch.get_rng_state()
    seen = []

    def look(token):
        seen.append((torch.is_grad_enabled(), [module.training for module in model.modules()] == modes))

    first = generate(model, PROMPTS, 5, on_token=look)
    assert seen == [(True, True)] * 20
    assert [module.training for module in model.modules()] == modes
    assert torch.equal(torch.get_rng_state(), before)
    assert generate(model.eval(), PROMPTS, 5) == first


def test_within_inference_mode():
    model = decoder("nn.Mamba")
    expected = generate(model, PROMPTS, 6)
    with torch.inference_mode():
        assert generate(model, PROMPTS, 6) == expected
    model(torch.tensor([[1, 2]])).sum().backward()


def test_tokens_come_as_they_are_written():
    model = decoder()
    written = generate(model, PROMPTS, 5, stop=[3])
    stream = write(model, PROMPTS, 5, stop=[3])
    rows = [[] for _ in PROMPTS]
    for token in stream:
        assert torch.is_grad_enabled()
        if token.id != 3:
            rows[token.row].append(token.id)
    assert rows == written.tokens
    heard = []
    generate(model, PROMPTS, 5, stop=[3], on_token=heard.append)
    assert heard == list(write(model, PROMPTS, 5, stop=[3]))


class Table:
    """The smallest language model: no module, a table of logits by the last token."""

    vocab = 3

    def __init__(self, table):
        self.table = torch.tensor(table)

    def stream(self, tokens, state=None, mask=None):
        return self.table[tokens], (torch.zeros(len(tokens)),)


def test_any_model_that_streams_writes():
    cycle = Table([[0.0, 9.0, 0.0], [0.0, 0.0, 9.0], [9.0, 0.0, 0.0]])
    assert generate(cycle, [[0], [1, 2]], 4, temperature=0).tokens == [[1, 2, 0, 1], [0, 1, 2, 0]]


class Copier(nn.Module):
    """An encoder-decoder that reads a source and writes it down again."""

    vocab = 7

    def prepare(self, source, source_mask=None):
        return (torch.nn.functional.one_hot(source, self.vocab).float(), torch.zeros(len(source), dtype=torch.int64))

    def stream(self, tokens, state, mask=None):
        source, seen = state
        at = seen.unsqueeze(1) + torch.arange(tokens.shape[1])
        return 9 * source.gather(1, at.unsqueeze(-1).expand(-1, -1, self.vocab)), (source, seen + tokens.shape[1])


def test_an_encoder_decoder_writes_from_what_it_read():
    source = torch.tensor([[3, 1, 4], [1, 5, 2]])
    model = Copier()
    assert generate(model, [[0], [0]], 3, state=model.prepare(source), temperature=0).tokens == source.tolist()
    assert generate(model, [[0], [0]], 3, state=model.prepare(source), temperature=0, stop=1).tokens == [[3], []]


PIECES = [b"a", b"b", b"<end>", b"<", b"e", b"nd", b">", b"", b"\xc3", b"\xa9", b"x"]


@pytest.mark.parametrize(
    ("tokens", "stop", "text", "used"),
    [
        ([0, 2, 1], "<end>", b"a", 2),
        ([0, 3, 4, 5, 6, 1], "<end>", b"a", 5),
        ([0, 3, 4, 0, 1], "<end>", b"a<eab", 5),
        ([0, 3, 3, 4, 5, 6, 1], "<end>", b"a<", 6),
        ([0, 8, 9, 1], "é", b"a", 3),
        ([0, 2, 1], "nd", b"a<e", 2),
        ([0, 3, 4], "<end>", b"a<e", 3),
        ([0, 1, 0, 1], ["ba", "ab"], b"", 2),
    ],
)
def test_a_stop_string_may_end_inside_a_token(tokens, stop, text, used):
    class Fixed:
        vocab = 11

        def stream(self, given, state=None, mask=None):
            at = 0 if state is None else int(state[0])
            row = torch.zeros(1, given.shape[1], 11)
            row[..., tokens[at]] = 9.0
            return row, (torch.tensor([at + 1]),)

    written = generate(Fixed(), [[0]], len(tokens), temperature=0, stop=stop, pieces=PIECES)
    assert written.texts == [text]
    assert written.tokens == [tokens[:used]]
    shown = write(Fixed(), [[0]], len(tokens), temperature=0, stop=stop, pieces=PIECES)
    assert b"".join(token.text for token in shown) == text


def test_what_is_held_back_comes_with_the_stop_token():
    table = torch.full((11, 11), -9.0)
    table[0, 3] = table[3, 7] = 9.0
    model = Table(table.tolist())
    model.vocab = 11
    written = list(write(model, [[0]], 5, temperature=0, stop=["<end>", 7], pieces=PIECES))
    assert [(token.id, token.text, token.ended) for token in written] == [(3, b"", ""), (7, b"<", "stop")]


def test_numbers_of_numpy_are_numbers():
    options = {"temperature": np.float32(0.5), "top_k": np.int64(3), "seed": np.int64(4)}
    assert generate(SMALL, [[1]], np.int64(3), **options) == generate(SMALL, [[1]], 3, temperature=0.5, top_k=3, seed=4)


def test_float32_and_int32():
    model = decoder().float()
    assert len(generate(model, torch.tensor([[1, 2]], dtype=torch.int32), 5).tokens[0]) == 5


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_broken_logits_are_told(value):
    broken = Table([[0.0, value, 0.0]] * 3)
    with pytest.raises(WonderlandError) as error:
        generate(broken, [[0]], 3)
    assert str(error.value) == (
        f"The model gives {'logits that are not numbers' if value != value else 'no finite logit for an allowed token'} "
        "in row 0, after 0 new tokens: look for NaN and infinity in its weights."
    )
    if value != value:
        with pytest.raises(WonderlandError, match="logits that are not numbers in row 0, after 0 new tokens"):
            generate(broken, [[0]], 3, temperature=0)


class Unsized(Table):
    """A model that does not tell its vocabulary."""

    vocab = None


SMALL = Decoder(vocab=11, dim=8, depth=1)
PLACED = Decoder(vocab=11, dim=8, depth=1, mixer=Spec("nn.Attention"), position=Learned.spec(length=6))


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (lambda: generate(SMALL, [], 3), "There are no prompts: give at least one."),
        (
            lambda: generate(SMALL, [[1], []], 3),
            "Prompt 1 is empty, and a model needs at least one token to continue: give it the begin token.",
        ),
        (
            lambda: generate(SMALL, torch.zeros(2, 0, dtype=torch.int64), 3),
            "Prompt 0 is empty, and a model needs at least one token to continue: give it the begin token.",
        ),
        (
            lambda: generate(SMALL, [[1], [2, 11]], 3),
            "Token 11 in prompt 1, position 1 is not in the vocabulary: tokens are 0 to 10.",
        ),
        (
            lambda: generate(SMALL, [[-1]], 3),
            "Token -1 in prompt 0, position 0 is not in the vocabulary: tokens are 0 to 10.",
        ),
        (
            lambda: generate(SMALL, [1, 2], 3),
            "Prompt 0 is a int, not a list of token ids; give a single prompt as a list that holds one list.",
        ),
        (
            lambda: generate(SMALL, "abc", 3),
            "Prompts are a list of lists of token ids, or a tensor (batch, time), not a str.",
        ),
        (
            lambda: generate(SMALL, [[1, 2.5]], 3),
            "Prompt 0 has 2.5 at position 1, which is not a token id: ids are whole numbers.",
        ),
        (
            lambda: generate(SMALL, torch.zeros(2, 3), 3),
            "Prompts are token ids, integers (batch, time), not torch.float32 of shape (2, 3).",
        ),
        (
            lambda: generate(SMALL, torch.zeros(2, 3, dtype=torch.int64), 3, mask=torch.ones(2, 3)),
            "The mask of prompts is a tensor of booleans (2, 3), True for real tokens, not torch.float32 (2, 3).",
        ),
        (
            lambda: generate(SMALL, torch.zeros(1, 3, dtype=torch.int64), 3, mask=torch.tensor([[True, False, True]])),
            "The mask has a gap in row 0: the real tokens of a prompt must be consecutive.",
        ),
        (
            lambda: generate(SMALL, [[1]], 3, mask=torch.ones(1, 1, dtype=torch.bool)),
            "A mask is for prompts in a tensor; lists need none, because their lengths are known.",
        ),
        (
            lambda: generate(PLACED, [[1], [1, 2, 3, 4]], 4),
            "Prompt 1 has 4 tokens and 4 more are asked for, but this model has 6 positions: "
            "ask for at most 3, or shorten the prompt.",
        ),
        (
            lambda: generate(PLACED, [[1] * 9], 1),
            "Prompt 0 has 9 tokens and 1 more are asked for, but this model has 6 positions: keep its last 6.",
        ),
        (
            lambda: generate(PLACED, [[1] * 9], 4),
            "Prompt 0 has 9 tokens and 4 more are asked for, but this model has 6 positions: keep its last 3.",
        ),
        (
            lambda: generate(PLACED, [[1] * 9], 9),
            "Prompt 0 has 9 tokens and 9 more are asked for, but this model has 6 positions: "
            "keep its last 1 and ask for at most 6.",
        ),
        (
            lambda: generate(SMALL, [[1]], 0),
            "count, the number of tokens to generate, is a whole number from 1, not 0.",
        ),
        (
            lambda: generate(SMALL, [[1]], 3, temperature=-1),
            "temperature is a number from 0 (the most likely token), not -1.",
        ),
        (
            lambda: generate(SMALL, [[1]], 3, temperature=float("nan")),
            "temperature is a number from 0 (the most likely token), not nan.",
        ),
        (lambda: generate(SMALL, [[1]], 3, top_k=0), "top_k is a whole number from 1, not 0."),
        (lambda: generate(SMALL, [[1]], 3, top_k=2.0), "top_k is a whole number from 1, not 2.0."),
        (lambda: generate(SMALL, [[1]], 3, top_p=0), "top_p is a probability above 0, at most 1, not 0."),
        (lambda: generate(SMALL, [[1]], 3, typical=1.5), "typical is a probability above 0, at most 1, not 1.5."),
        (lambda: generate(SMALL, [[1]], 3, min_p=-0.1), "min_p is a number from 0 to 1, not -0.1."),
        (
            lambda: generate(SMALL, [[1]], 3, repetition_penalty=0),
            "repetition_penalty is a number above 0 (1 has no effect), not 0.",
        ),
        (
            lambda: generate(SMALL, [[1]], 3, stop=["a"]),
            "Stop strings are searched for in the text: give pieces, the bytes of each token (a tokenizer's pieces()).",
        ),
        (
            lambda: generate(SMALL, [[1]], 3, stop=[""], pieces=PIECES),
            "A stop string is empty: it would end every text before it begins.",
        ),
        (lambda: generate(SMALL, [[1]], 3, stop=[11]), "The stop token 11 is not in the vocabulary."),
        (
            lambda: generate(SMALL, [[1]], 3, stop=[1.5]),
            "stop is a token id, a string, or a list of them, and 1.5 is neither.",
        ),
        (
            lambda: generate(SMALL, [[1]], 3, pieces=[b"a"]),
            "There are 1 pieces and the model has 11 tokens: give one for each.",
        ),
        (
            lambda: generate(SMALL, [[1]], 3, rows=[1, 2]),
            "rows has 2 names and there are 1 prompts: give one for each.",
        ),
        (lambda: generate(SMALL, [[1]], 3, seed=0.5), "seed is a whole number, not 0.5."),
        (
            lambda: generate(Unsized([[0.0] * 3] * 3), [[1]], 3, pieces=[b"a", b"b"]),
            "There are 2 pieces and the model has 3 tokens: give one for each.",
        ),
        (lambda: write(SMALL, [[1]], 3, temprature=1), "write has no option 'temprature'. Did you mean 'temperature'?"),
        (
            lambda: generate(nn.Linear(2, 2), [[1]], 3),
            "A Linear cannot generate: a language model has stream(tokens, state, mask), which returns logits and the next state.",
        ),
    ],
)
def test_what_does_not_fit_is_told(run, words):
    with pytest.raises(WonderlandError) as error:
        run()
    assert str(error.value) == words
