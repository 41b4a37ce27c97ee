"""Question answering: exact match and F1 of normalized answers, as for SQuAD."""

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

from wonderland.core import WonderlandError
from wonderland.tasks.text.references import reference_list

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalize_answer(answer: str) -> str:
    """An answer in lower case without punctuation, articles and extra spaces, as in SQuAD.

    >>> normalize_answer("The  White Rabbit!")
    'white rabbit'
    """
    return " ".join(_ARTICLES.sub(" ", answer.lower().translate(_PUNCTUATION)).split())


def exact_match(predicted: str, references: str | Sequence[str]) -> float:
    """1 if the normalized answer equals one of the normalized references, else 0.

    >>> exact_match("the Rabbit", ["White Rabbit", "rabbit."])
    1.0
    """
    return _best(predicted, references, "exact_match", lambda answer, reference: float(answer == reference))


def span_f1(predicted: str, references: str | Sequence[str]) -> float:
    r"""F1 of the words of an answer against the best reference, both normalized.

    .. math:: F_1 = \frac{2 P R}{P + R}, \qquad P = \frac{|\text{common}|}{|\text{answer}|}

    An empty answer scores 1 where the reference is empty (a question without an answer). Paper: Rajpurkar et al., 2016.

    >>> span_f1("the White Rabbit", "rabbit")
    0.6666666666666666
    """

    def f1(answer: str, reference: str) -> float:
        a, b = answer.split(), reference.split()
        common = (Counter(a) & Counter(b)).total()
        if not a or not b:
            return float(a == b)
        precision, recall = common / len(a), common / len(b)
        return 2 * precision * recall / (precision + recall) if common else 0.0

    return _best(predicted, references, "span_f1", f1)


def _best(predicted: str, references: str | Sequence[str], name: str, score: Callable[[str, str], float]) -> float:
    if not isinstance(predicted, str):
        raise WonderlandError(f"{name} takes a string, not a {type(predicted).__name__}.")
    answer = normalize_answer(predicted)
    return max(score(answer, normalize_answer(reference)) for reference in reference_list(references, 0, name))
