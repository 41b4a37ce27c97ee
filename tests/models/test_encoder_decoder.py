"""The encoder-decoder: equal to torch's transformer, streaming equal to the whole, words for what does not fit."""

import pytest
import torch
from torch import nn

from wonderland.core import Spec, WonderlandError
from wonderland.models import EncoderDecoder
from wonderland.nn import MLP, Alibi, Attention, CrossAttention, Learned, RelativeBuckets, RMSNorm, Rotary, Shift, rows

SMALL = {"vocab": 11, "dim": 8, "depth": 2, "heads": 2}
T5 = {
    "vocab": 11, "dim": 8, "depth": 2, "mixer": Attention.spec(heads=2, key_dim=3, value_dim=3, scale=1.0),
    "cross": CrossAttention.spec(heads=2, key_dim=3, value_dim=3, scale=1.0), "channel": MLP.spec(hidden=12, activation="relu"),
    "position": False, "relative": RelativeBuckets.spec(buckets=8, farthest=20), "norm": RMSNorm.spec(), "scale": "head",
}  # fmt: skip


def shaken(model: nn.Module) -> nn.Module:
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
    return model.double().eval()


def torch_weights(theirs: nn.Transformer) -> dict[str, torch.Tensor]:
    """Weights of torch's transformer under our names."""
    actual = {}
    for name, value in theirs.state_dict().items():
        side, _, index, *rest = name.split(".")
        tail = ".".join(rest)
        place = f"{side}.blocks.{index}."
        for old, new in {
            "self_attn.in_proj_": "mixer.project.", "self_attn.out_proj.": "mixer.out.", "multihead_attn.out_proj.": "cross.out.",
            "linear1.": "channel.inward.", "linear2.": "channel.outward.", "norm1.": "norms.0.", "norm2.": "norms.1.",
            "norm3.": "norms.2.",
        }.items():  # fmt: skip
            if tail.startswith(old):
                actual[place + new + tail.removeprefix(old)] = value
        if tail.startswith("multihead_attn.in_proj_"):
            kind, dim = tail.removeprefix("multihead_attn.in_proj_"), value.shape[0] // 3
            actual[f"{place}cross.query.{kind}"], actual[f"{place}cross.project.{kind}"] = value[:dim], value[dim:]
    return actual


@pytest.mark.parametrize("placement", ["pre", "post"])
def test_it_is_torchs_transformer(placement):
    layers = {"d_model": 8, "nhead": 2, "dim_feedforward": 12, "dropout": 0.0, "norm_first": placement == "pre"}
    theirs = nn.Module()
    theirs.encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(**layers, batch_first=True), 2, enable_nested_tensor=False
    )
    theirs.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(**layers, batch_first=True), 2)
    shaken(theirs)
    ours = EncoderDecoder(
        vocab=11, dim=8, depth=2, mixer=Attention.spec(heads=2, bias=True), cross=CrossAttention.spec(heads=2, bias=True),
        channel=MLP.spec(hidden=12, activation="relu", bias=True), placement=placement,
    ).double()  # fmt: skip
    if placement == "pre":  # torch puts no norm at the end unless asked
        ours.encoder.norm = ours.decoder.norm = None
    missing = ours.load_state_dict(torch_weights(theirs), strict=False).missing_keys
    assert missing == ["embedding.weight", "position.frequencies"]
    source, tokens = torch.randint(11, (3, 6)), torch.randint(11, (3, 5))
    mask = torch.arange(6) < torch.tensor([[6], [4], [1]])
    memory = theirs.encoder(
        ours._embed(source, ours.embedding.weight, ours.position, None, None, None), src_key_padding_mask=~mask
    )
    causal = nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.float64)
    x = ours.embed(tokens, None, None)
    expected = theirs.decoder(x, memory, tgt_mask=causal, memory_key_padding_mask=~mask) @ ours.embedding.weight.t()
    assert torch.allclose(ours(source, tokens, mask), expected, atol=1e-12)


@pytest.mark.parametrize("how", [{**SMALL, "placement": "post"}, T5, {**SMALL, "position": Learned.spec(length=9)}])
def test_prepare_and_stream_are_forward_whatever_the_padding(how):
    model = shaken(EncoderDecoder(**how))
    source, tokens = torch.randint(11, (3, 6)), torch.randint(11, (3, 5))
    right, left = torch.arange(6) < torch.tensor([[6], [4], [2]]), torch.arange(6) >= torch.tensor([[0], [2], [4]])
    whole = model(source, tokens, right)
    for row in range(3):
        alone = model(source[row : row + 1, right[row]], tokens[row : row + 1])
        assert torch.allclose(alone, whole[row : row + 1], atol=1e-12)
    state = model.prepare(source, right)
    head, state = model.stream(tokens[:, :2], state)
    tail, _ = model.stream(tokens[:, 2:], state)
    assert torch.allclose(torch.cat([head, tail], 1), whole, atol=1e-12)
    rolled = torch.stack([source[row].roll(int((~right[row]).sum())) for row in range(3)])
    assert torch.allclose(model(rolled, tokens, left), whole, atol=1e-12)
    short = torch.tensor([[True] * 5, [False, False, True, True, True], [True, True, False, False, False]])
    actual = model(source, tokens, right, short)
    for row in range(3):
        alone = model(source[row : row + 1, right[row]], tokens[row : row + 1, short[row]])
        assert torch.allclose(actual[row : row + 1, short[row]], alone, atol=1e-12)
    assert (actual[~short] == 0).all()


def test_rows_of_a_state_can_be_chosen():
    model = shaken(EncoderDecoder(**T5))
    source, tokens = torch.randint(11, (2, 6)), torch.randint(11, (2, 5))
    mask = torch.tensor([[True] * 6, [True] * 3 + [False] * 3])
    _, state = model.stream(tokens[:, :2], model.prepare(source, mask))
    index = torch.tensor([1, 1, 0])
    actual, _ = model.stream(tokens[index, 2:], rows(state, index))
    assert torch.allclose(actual, model(source, tokens, mask)[index, 2:], atol=1e-12)


def test_a_source_moves_every_output_and_its_padding_none():
    model = shaken(EncoderDecoder(**SMALL))
    source, tokens = torch.randint(10, (1, 4)), torch.randint(11, (1, 3))
    base, mask = model(source, tokens), torch.tensor([[True, True, True, False]])
    other = source.clone()
    other[0, 3] += 1
    assert (model(other, tokens) - base).abs().amin(-1).min() > 0
    assert torch.equal(model(other, tokens, mask), model(source, tokens, mask))


def test_one_source_serves_many_rows():
    model = shaken(EncoderDecoder(**SMALL))
    source, tokens = torch.randint(11, (1, 4)), torch.randint(11, (3, 5))
    given = model.given(source)
    assert torch.allclose(given(tokens), model(source.expand(3, -1), tokens), atol=1e-12)
    assert torch.allclose(given.stream(tokens)[0], given(tokens), atol=1e-12)
    assert given.vocab == 11


def test_embeddings_and_heads_are_shared_or_not():
    names = set(EncoderDecoder(**SMALL).state_dict())
    assert {"embedding.weight"} == {name for name in names if "embedding" in name or name.startswith("head")}
    apart = EncoderDecoder(**SMALL, target_vocab=7, share=False, tie=False, position=Learned.spec(length=5))
    assert apart.source_embedding.weight.shape == (11, 8)
    assert apart.head.weight.shape == apart.embedding.weight.shape == (7, 8)
    assert apart.source_position.weight is not apart.position.weight
    assert apart(torch.tensor([[10]]), torch.tensor([[6]])).shape == (1, 1, 7)


def test_a_bias_that_layers_share_is_kept_once():
    model = EncoderDecoder(**T5)
    names = [name for name, _ in model.named_parameters() if "position" in name]
    assert names == ["encoder.position.weight", "decoder.position.weight"]
    blocks = [*model.encoder.blocks, *model.decoder.blocks]
    assert [block.mixer.position.causal for block in blocks] == [False, False, True, True]
    assert blocks[2].mixer.position is blocks[3].mixer.position is model.decoder.position


def test_it_is_built_again_from_json():
    spec = EncoderDecoder.spec(**T5)
    built = Spec.from_json(spec.to_json()).build()
    assert {name: value.shape for name, value in built.state_dict().items()} == {
        name: value.shape for name, value in EncoderDecoder(**T5).state_dict().items()
    }


TOKENS = torch.zeros(2, 3, dtype=torch.int64)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: EncoderDecoder(vocab=0),
            "An EncoderDecoder needs at least one token and one feature, not vocab=0, target_vocab=0, dim=128.",
        ),
        (
            lambda: EncoderDecoder(vocab=5, target_vocab=6),
            "Vocabularies of 5 and 6 tokens cannot share one embedding: give share=False.",
        ),
        (
            lambda: EncoderDecoder(**SMALL, scale="heads"),
            "scale is 'embedding', 'head', 'none', not 'heads'. Did you mean 'head'?",
        ),
        (
            lambda: EncoderDecoder(**SMALL, mixer=Shift.spec(causal=False)),
            "The mixer of an EncoderDecoder has to be causal, and nn.Shift is not: give a causal one.",
        ),
        (
            lambda: EncoderDecoder(**SMALL, position=Rotary.spec()),
            "nn.Rotary cannot be added to an embedding: put it into the mixer's spec, or give it as relative.",
        ),
        (
            lambda: EncoderDecoder(**SMALL, relative=Rotary.spec()),
            "nn.Rotary has nothing to learn, so it is not shared: put it into the mixer's spec.",
        ),
        (
            lambda: EncoderDecoder(**SMALL, mixer=Attention.spec(position=Alibi.spec()), relative=Alibi.spec()),
            "An Attention has one position: leave Alibi out of its spec, or do not share nn.Alibi among the blocks.",
        ),
        (
            lambda: EncoderDecoder(**SMALL, mixer=Shift.spec(), relative=Alibi.spec()),
            "No block of this Stack has an attention that nn.Alibi could be shared by.",
        ),
        (
            lambda: EncoderDecoder(**SMALL)(TOKENS, TOKENS[:1]),
            "The source has 2 rows and the target 1: give one for each.",
        ),
        (
            lambda: EncoderDecoder(**SMALL)(TOKENS.float(), TOKENS),
            "The source of an EncoderDecoder takes tokens as whole numbers (int64 or int32), not torch.float32.",
        ),
        (
            lambda: EncoderDecoder(**SMALL)(TOKENS + 11, TOKENS),
            "Token 11 in row 0, position 0 is not in the vocabulary: tokens are 0 to 10.",
        ),
        (
            lambda: EncoderDecoder(**SMALL)(TOKENS, TOKENS, TOKENS > 0),
            "The source of an EncoderDecoder got a mask whose row 0 has no real token: leave empty sequences out of the "
            "batch.",
        ),
        (
            lambda: EncoderDecoder(**SMALL).stream(TOKENS, None),
            "An EncoderDecoder needs a source: stream from the state of prepare(source).",
        ),
        (
            lambda: EncoderDecoder(**SMALL).stream(TOKENS[:1], EncoderDecoder(**SMALL).prepare(TOKENS)),
            "The state does not fit this EncoderDecoder: entry 0 is for 2 rows and the input has 1. "
            "A state belongs to the model and the batch that made it: call prepare again.",
        ),
        (
            lambda: EncoderDecoder(**SMALL).stream(TOKENS, EncoderDecoder(**SMALL).double().prepare(TOKENS)),
            "The state of this EncoderDecoder holds torch.float64 and its weights torch.float32: "
            "continue in the type that the state was made in.",
        ),
        (
            lambda: RelativeBuckets(8, heads=2, buckets=3),
            "RelativeBuckets cannot be built with heads=2, buckets=3, farthest=128, causal=False: heads is at least 1, "
            "buckets at least 4, and farthest above the distances that have a bucket of their own, a half of the buckets "
            "of one side.",
        ),
    ],
)
def test_what_does_not_fit_is_told(call, words):
    with pytest.raises(WonderlandError) as error:
        call()
    assert str(error.value) == words
