"""What a part is built with: wrong kinds of arguments meet a sentence, whichever part it is."""

import contextlib
import inspect
import math

import numpy as np
import pytest
import torch
from jaxtyping import TypeCheckError

from wonderland import models, nn
from wonderland.core import Spec, WonderlandError, find, parts
from wonderland.nn.contract.arguments import check_arguments


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: nn.Mamba("8"), "Mamba needs a dim, the width of its tokens, of at least 1, not '8'."),
        (lambda: nn.Mamba(True), "Mamba needs a dim, the width of its tokens, of at least 1, not True."),
        (lambda: nn.Mamba(8, stat_size=3), "Mamba has no argument 'stat_size'. Did you mean 'state_size'?"),
        (lambda: nn.S4D(8, state_size=None), "S4D needs state_size to be a whole number, not None."),
        (lambda: nn.GRU(8, state_size=True), "GRU needs state_size to be a whole number, not True."),
        (lambda: nn.Attention(8, causal="no"), "Attention needs causal to be True or False, not 'no'."),
        (lambda: nn.Attention(8, dropout="0.1"), "Attention needs dropout to be a finite number, not '0.1'."),
        (lambda: nn.LSTM(8, forget_bias=math.nan), "LSTM needs forget_bias to be a finite number, not nan."),
        (lambda: nn.MLP(8, expansion=math.inf), "MLP needs expansion to be a finite number, not inf."),
        (lambda: nn.S4D(8, start=3), "S4D needs start to be text, not 3."),
        (lambda: nn.Stack(8, "2", nn.MLP.spec()), "Stack needs depth to be a whole number, not '2'."),
        (
            lambda: nn.Attention(8, position=nn.Rotary),
            "Attention needs position to be a spec, which is built where it belongs, "
            "not the class Rotary; write Rotary.spec().",
        ),
        (
            lambda: nn.Attention(8, position=nn.Rotary(2)),
            "Attention needs position to be a spec, which is built where it belongs, not a built Rotary.",
        ),
        (
            lambda: nn.Attention(8, position=nn.MLP.spec()),
            "Attention cannot use nn.MLP as its position: it takes one that rotates or biases (Rotary, Alibi, "
            "RelativeBias); one that embeds is added to the embeddings, by the model.",
        ),
        (
            lambda: nn.LinearAttention(8, feature_map=nn.RandomFeatures),
            "LinearAttention needs feature_map to be a spec, which is built where it belongs, "
            "not the class RandomFeatures; write RandomFeatures.spec().",
        ),
        (
            lambda: nn.LinearAttention(8, feature_map=nn.MLP.spec()),
            "LinearAttention cannot use nn.MLP as its feature map: take nn.EluPlusOne.spec(), nn.ReluFeatures.spec(), "
            "nn.ExpFeatures.spec(), nn.RandomFeatures.spec(), or a module with `features`.",
        ),
        (
            lambda: nn.Block(8, nn.Mamba),
            "The mixer of a block is a spec such as nn.MLP.spec(), which is built once a layer, "
            "not the class Mamba; write Mamba.spec().",
        ),
        (
            lambda: nn.Block(8, nn.Mamba.spec(), norm=nn.RMSNorm),
            "Block needs norm to be a spec or a list of specs, not the class RMSNorm; write RMSNorm.spec().",
        ),
        (
            lambda: nn.Block(8, nn.Mamba.spec(), norm=nn.Rotary.spec()),
            "nn.Rotary looks at more than one token or keeps no width, so it cannot be a norm: "
            "take nn.LayerNorm.spec(), nn.RMSNorm.spec() or the like.",
        ),
        (
            lambda: nn.Stack(8, 2, nn.MLP),
            "The blocks of a stack are a spec such as nn.MLP.spec(), or a list of specs, "
            "not the class MLP; write MLP.spec().",
        ),
        (
            lambda: nn.Stack(8, 2, [nn.MLP.spec(), nn.MLP(8)]),
            "The blocks of a stack are a spec such as nn.MLP.spec(), or a list of specs, not a built MLP.",
        ),
        (
            lambda: nn.Stack(8, 2, nn.MLP.spec(), norm=nn.RMSNorm),
            "The norm of a stack is True, False or a spec such as nn.RMSNorm.spec(), "
            "not the class RMSNorm; write RMSNorm.spec().",
        ),
        (
            lambda: nn.Bidirectional(8, mixer=nn.GRU),
            "The mixer of a Bidirectional is a spec such as nn.LSTM.spec(), not the class GRU; write GRU.spec().",
        ),
        (
            lambda: nn.Bidirectional(8, mixer=nn.Rotary.spec()),
            "Bidirectional takes a causal mixer, and nn.Rotary is none.",
        ),
        (
            lambda: models.Decoder(vocab=5, dim=8, mixer=nn.Mamba),
            "The mixer of a Decoder is a spec such as nn.Mamba.spec(), or a list of specs, "
            "not the class Mamba; write Mamba.spec().",
        ),
        (
            lambda: models.Decoder(vocab=5, dim=8, mixer=[nn.Mamba.spec(), nn.Mamba(8)]),
            "The mixer of a Decoder is a spec such as nn.Mamba.spec(), or a list of specs, not a built Mamba.",
        ),
        (
            lambda: models.Decoder(vocab=5, dim=8, mixer=[]),
            "The mixer of a Decoder is a spec such as nn.Mamba.spec(), or a list of specs, not an empty list.",
        ),
        (
            lambda: models.Decoder(vocab=5, dim=8, channel=nn.MLP),
            "The channel of a Decoder is a spec such as nn.MLP.spec(), None or False, "
            "not the class MLP; write MLP.spec().",
        ),
        (
            lambda: models.Decoder(vocab=5, dim=8, position=nn.Sinusoidal),
            "Decoder needs position to be a spec, which is built where it belongs, "
            "not the class Sinusoidal; write Sinusoidal.spec().",
        ),
        (
            lambda: models.Decoder(vocab=5, dim=8, position=nn.MLP.spec()),
            "nn.MLP is not a position that can be added to an embedding: give nn.Learned.spec() or nn.Sinusoidal.spec().",
        ),
        (lambda: models.Decoder(vocab=5.0, dim=8), "Decoder needs vocab to be a whole number, not 5.0."),
        (lambda: models.Decoder(vocab=5, dims=8), "Decoder has no argument 'dims'. Did you mean 'dim'?"),
        (lambda: nn.Rotary("8"), "Rotary needs dim to be a whole number, not '8'."),
        (lambda: nn.Alibi(8, heads=1.5), "Alibi needs heads to be a whole number, not 1.5."),
        (
            lambda: nn.CrossAttention(8, context_dim=2.5),
            "CrossAttention needs context_dim to be a whole number, not 2.5.",
        ),
        (lambda: nn.LatentAttention("8"), "LatentAttention needs dim to be a whole number, not '8'."),
        (lambda: nn.SequenceHead(8, -1), "SequenceHead cannot be built with outputs=-1: it is a whole number from 1."),
        (
            lambda: nn.SequenceHead(8, 2, hidden=0),
            "SequenceHead cannot be built with hidden=0: it is a whole number from 1.",
        ),
        (lambda: nn.TokenHead(8, 0), "TokenHead cannot be built with outputs=0: it is a whole number from 1."),
        (lambda: nn.Pool(0), "Pool cannot be built with dim=0: it is a whole number from 1."),
        (lambda: nn.Registers(0), "Registers cannot be built with dim=0: it is a whole number from 1."),
        (lambda: nn.KAN(8, hidden=0), "KAN cannot be built with hidden=0: it is a whole number from 1."),
        (
            lambda: nn.LongConvolution(8, bands=-1),
            "LongConvolution cannot be built with bands=-1: it is a whole number from 1.",
        ),
        (
            lambda: nn.RandomFeatures(8, features=0),
            "RandomFeatures cannot be built with features=0: it is a whole number from 1.",
        ),
        (
            lambda: nn.SpatialGate(8, length=-1),
            "SpatialGate cannot be built with length=-1: it is a whole number from 1.",
        ),
        (lambda: nn.KernelRegression(width=None), "KernelRegression needs width to be a finite number, not None."),
    ],
)
def test_what_a_part_cannot_be_built_with_is_told(build, sentence):
    with pytest.raises(WonderlandError) as error:
        build()
    assert str(error.value) == sentence


@pytest.mark.parametrize("wrong", [["relu"], nn.MLP, nn.MLP.spec(), 3])
def test_what_is_no_activation_is_told(wrong):
    with pytest.raises(WonderlandError, match=r"There is no activation .* The choices are identity, relu"):
        nn.MLP(8, activation=wrong)


def test_a_memory_takes_an_activation_by_its_name():
    torch.manual_seed(0)
    named = nn.MemoryAttention(4, activation="tanh", project=False)
    torch.manual_seed(0)
    given = nn.MemoryAttention(4, activation=torch.tanh, project=False)
    x = torch.randn(1, 3, 4)
    assert torch.equal(named(x), given(x))


def test_numbers_of_numpy_are_numbers():
    check_arguments(nn.Mamba, (np.int64(8),), {"state_size": np.int32(3)})
    with pytest.raises(WonderlandError, match=r"Block needs dropout to be a finite number, not np\.float64\(nan\)\."):
        nn.Block(8, nn.Mamba.spec(), dropout=np.float64("nan"))


REQUIRED = {
    "dim": 8, "vocab": 9, "classes": 3, "channels": 1, "height": 8, "width": 8, "numbers": 3, "levels": [4, 2], "outputs": 2,
    "depth": 1, "groups": 2, "source_vocab": 7, "words": ["cat", "dog"], "members": 2, "inputs": 3,
    "probabilities": [0.1, 0.2], "sigmas": [0.1, 0.2], "mixer": nn.GRU.spec(), "inner": nn.MLP.spec(),
    "block": nn.Block.spec(mixer=nn.GRU.spec()), "trunk": models.Encoder.spec(vocab=9, dim=8, depth=1),
    "model": models.Decoder.spec(vocab=9, dim=8, depth=1),
}  # fmt: skip
VALUES = ("x", ["a"], {"a": 1}, -1, 0, 1.5, None, True, (), nn.gelu, nn.MLP.spec())
BUILT = [name for name in parts() if name.split(".")[0] in ("models", "nn") and inspect.isclass(find(name))]


@pytest.mark.parametrize("name", BUILT)
def test_any_literal_for_any_argument_builds_or_meets_a_sentence(name):
    known = inspect.signature(find(name)).parameters
    needed = {key: REQUIRED[key] for key, each in known.items() if each.default is each.empty and key in REQUIRED}
    for key in known:
        for value in VALUES:
            # Annotations that are checked under test, and not in use, speak first in some places.
            with contextlib.suppress(WonderlandError, TypeCheckError):
                Spec(name, {**needed, key: value}).build()


@pytest.mark.parametrize(
    ("build", "sentence"),
    [
        (lambda: models.ConvNet(1, 3, 8, 8, dim="x"), "ConvNet needs dim to be a whole number, not 'x'."),
        (lambda: models.ConvNet(1, 3, 8, 8, mean=["x"]), "ConvNet needs mean to be a list of finite numbers, not ['x']."),
        (lambda: models.TableNet(3, 4, 2), "TableNet needs levels to be a list of whole numbers, not 4."),
        (lambda: models.TableNet(3, [4], 2, category_dim=0), "TableNet cannot be built with category_dim=0: it is a whole number from 1."),
        (lambda: models.TextCNN(9, 3, widths="345"), "TextCNN needs widths to be a list of whole numbers, not '345'."),
        (lambda: models.FastText([1]), "FastText needs words to be a list of texts, not [1]."),
        (lambda: models.Encoder(9, position="x"), "Encoder needs position to be a spec, True or False, not 'x'."),
        (lambda: models.Encoder(9, mixer="x"), "Encoder needs mixer to be a spec or a list of specs, not 'x'."),
        (lambda: nn.MLP(8, expansion=1e30), f"MLP has at most 16,777,216 hidden units, not {round(8e30):,}: lower hidden or expansion."),
        (lambda: models.Decoder(9, dmi=8), "Decoder has no argument 'dmi'. Did you mean 'dim'?"),
    ],
)  # fmt: skip
def test_models_say_which_argument_is_of_the_wrong_kind(build, sentence):
    with pytest.raises(WonderlandError) as caught:
        build()
    assert str(caught.value) == sentence
