"""Options that kinds of text share: how text becomes tokens, and a checkpoint to begin with."""

from dataclasses import dataclass

from wonderland.core.options import option
from wonderland.kinds.kind import Options

TOKENS = ("characters", "words", "bpe", "wordpiece", "unigram")
METHODS = ("full", "head", "lora", "ia3", "bias")


@dataclass(frozen=True)
class TokenOptions(Options):
    """Options of texts."""

    column: str | None = option(help="the column or field that holds the text", metavar="COLUMN")
    tokens: str | None = option(help="kind of tokens (default: by size)", choices=TOKENS)
    vocab: int | None = option(help="how many tokens at most", least=2)
    context: int | None = option(help="how many tokens are read at a time", metavar="TOKENS", least=1)
    start: str | None = option(
        help="begin with the checkpoint in this folder of the transformers library", metavar="CHECKPOINT", flag="--from"
    )
    method: str | None = option(
        help="what of a checkpoint learns (default full): everything, its head, or an adapter that is merged at the end",
        choices=METHODS,
    )

    def cut(self) -> dict[str, str | int]:
        """What was asked of the tokens: their kind, their number, and how many of them are read."""
        asked = {"tokens": self.tokens, "vocab": self.vocab, "context": self.context}
        return {name: value for name, value in asked.items() if value is not None}


EVALUATIONS = 15


def evaluations(steps: int) -> int:
    """Every how many steps a model of tokens is evaluated: often enough for a curve, seldom enough to cost little."""
    return max(1, min(20, steps // 6), steps // EVALUATIONS)
