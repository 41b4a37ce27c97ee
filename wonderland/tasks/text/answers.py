"""Answers to questions: right as a whole, or in part, once case, signs and articles are put aside."""

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

from wonderland.core import WonderlandError
from wonderland.tasks.text.pairs import several

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_SIGNS = str.maketrans("", "", string.punctuation)


def normal(answer: str) -> str:
    """An answer without case, signs, articles and spare spaces, as SQuAD compares them.

    >>> normal("The  White Rabbit!")
    'white rabbit'
    """
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_SIGNS)).split())


def exact_match(predicted: str, references: str | Sequence[str]) -> float:
    """1 where an answer is one of the references, else 0, both made `normal`.

    >>> exact_match("the Rabbit", ["White Rabbit", "rabbit."])
    1.0
    """
    return _best(predicted, references, "exact_match", lambda mine, other: float(mine == other))


def span_f1(predicted: str, references: str | Sequence[str]) -> float:
    r"""How well the words of an answer and of the best reference agree, both made `normal`.

    .. math:: F_1 = \frac{2 P R}{P + R}, \qquad P = \frac{|\text{common}|}{|\text{answer}|}

    An empty answer is right where the reference is empty (a question without an answer). Paper: Rajpurkar et al., 2016.

    >>> span_f1("the White Rabbit", "rabbit")
    0.6666666666666666
    """

    def one(mine: str, other: str) -> float:
        a, b = mine.split(), other.split()
        common = (Counter(a) & Counter(b)).total()
        if not a or not b:
            return float(a == b)
        precision, recall = common / len(a), common / len(b)
        return 2 * precision * recall / (precision + recall) if common else 0.0

    return _best(predicted, references, "span_f1", one)


def _best(predicted: str, references: str | Sequence[str], name: str, one: Callable[[str, str], float]) -> float:
    if not isinstance(predicted, str):
        raise WonderlandError(f"{name} takes a string to judge, not a {type(predicted).__name__}.")
    mine = normal(predicted)
    return max(one(mine, normal(other)) for other in several(references, 0, name))
