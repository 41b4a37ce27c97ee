"""The published sizes of GPT, GPT-2 and GPT-3, as constructors of a `Decoder`."""

from typing import Any

from wonderland.core import published
from wonderland.nn.channel.mlp import MLP
from wonderland.nn.mixers.attention import Attention
from wonderland.nn.norms.norm import LayerNorm
from wonderland.nn.positions import Learned


class GPTSizes:
    """Constructors for the published sizes of the GPT family; arguments change what they set.

    GPT norms after each sum, GPT-2 and GPT-3 before each layer and at the end. All have learned positions, biases, tied
    embeddings, and GELU in its tanh form. GPT-3 alternates dense attention with locally banded attention; here all of it is
    dense, with the same parameters.
    """

    @classmethod
    @published
    def gpt(cls, **more: Any) -> Any:
        """116,534,784 parameters: 12 layers of width 768, 512 positions, 40,478 tokens. Paper: Radford et al., 2018."""
        return cls(**_arguments(12, 768, 12, length=512, vocab=40_478, placement="post", **more))

    @classmethod
    @published
    def gpt2_small(cls, **more: Any) -> Any:
        """124,439,808 parameters. Paper: Radford et al., 2019."""
        return cls(**_arguments(12, 768, 12, **more))

    @classmethod
    @published
    def gpt2_medium(cls, **more: Any) -> Any:
        """354,823,168 parameters."""
        return cls(**_arguments(24, 1024, 16, **more))

    @classmethod
    @published
    def gpt2_large(cls, **more: Any) -> Any:
        """774,030,080 parameters."""
        return cls(**_arguments(36, 1280, 20, **more))

    @classmethod
    @published
    def gpt2_xl(cls, **more: Any) -> Any:
        """1,557,611,200 parameters."""
        return cls(**_arguments(48, 1600, 25, **more))

    @classmethod
    @published
    def gpt3_small(cls, **more: Any) -> Any:
        """125 million parameters, 2,048 positions. Paper: Brown et al., 2020."""
        return cls(**_arguments(12, 768, 12, length=2048, **more))

    @classmethod
    @published
    def gpt3_medium(cls, **more: Any) -> Any:
        """356 million parameters."""
        return cls(**_arguments(24, 1024, 16, length=2048, **more))

    @classmethod
    @published
    def gpt3_large(cls, **more: Any) -> Any:
        """760 million parameters."""
        return cls(**_arguments(24, 1536, 16, length=2048, **more))

    @classmethod
    @published
    def gpt3_xl(cls, **more: Any) -> Any:
        """1.3 billion parameters; heads of width 128, as their width is published, not 24 heads, as their number is."""
        return cls(**_arguments(24, 2048, 16, length=2048, **more))

    @classmethod
    @published
    def gpt3_2_7b(cls, **more: Any) -> Any:
        """2.7 billion parameters."""
        return cls(**_arguments(32, 2560, 32, length=2048, **more))

    @classmethod
    @published
    def gpt3_6_7b(cls, **more: Any) -> Any:
        """6.7 billion parameters."""
        return cls(**_arguments(32, 4096, 32, length=2048, **more))

    @classmethod
    @published
    def gpt3_13b(cls, **more: Any) -> Any:
        """13 billion parameters; 40 layers of width 5,120, 128 for each head."""
        return cls(**_arguments(40, 5120, 40, length=2048, **more))

    @classmethod
    @published
    def gpt3_175b(cls, **more: Any) -> Any:
        """175 billion parameters."""
        return cls(**_arguments(96, 12288, 96, length=2048, **more))


def _arguments(
    depth: int, dim: int, heads: int, /, *, length: int = 1024, vocab: int = 50_257, **more: Any
) -> dict[str, Any]:
    """The arguments of a `Decoder` of the GPT family."""
    usual = {
        "vocab": vocab,
        "dim": dim,
        "depth": depth,
        "mixer": Attention.spec(heads=heads, bias=True),
        "channel": MLP.spec(activation="gelu_tanh", bias=True),
        "position": Learned.spec(length=length),
        "norm": LayerNorm.spec(eps=1e-5),
    }
    return {**usual, **more}
