"""TREC's questions as tokens: tokenised as by Kim, one id per word, 0 for padding."""

import re
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from wonderland.core import WonderlandError

_ENDINGS = re.compile(r"('s|'ve|n't|'re|'d|'ll)")
_SIGNS = re.compile(r"([,!()?])")
_REST = re.compile(r"[^A-Za-z0-9(),!?'`]")


class Questions(NamedTuple):
    """Tokens (n, longest), 0 where there is none, and the kind of each question (n)."""

    tokens: Tensor
    kinds: Tensor


def words(line: str) -> list[str]:
    """The words of a sentence in lower case, with endings and punctuation as separate words.

    >>> words("Who's there? (It isn't me.)")
    ['who', "'s", 'there', '?', '(', 'it', 'is', "n't", 'me', ')']
    """
    line = _SIGNS.sub(r" \1 ", _ENDINGS.sub(r" \1", _REST.sub(" ", line)))
    return line.lower().split()


def read(path: Path) -> list[tuple[int, list[str]]]:
    """Lines of a kind and a question."""
    questions = []
    for row, line in enumerate(path.read_text(encoding="latin-1").splitlines(), 1):
        kind, _, question = line.partition(" ")
        if not kind.isdigit() or not question.strip():
            raise WonderlandError(f"Line {row} of {path} is not a number, a space and a question.")
        questions.append((int(kind), words(question)))
    if not questions:
        raise WonderlandError(f"{path} holds no question.")
    return questions


def encode(questions: list[tuple[int, list[str]]], numbers: dict[str, int], unknown: int | None = None) -> Questions:
    """Rows of word ids; a new word gets the next id, or `unknown` if that is given."""
    longest = max(len(sentence) for _, sentence in questions)
    tokens = torch.zeros(len(questions), longest, dtype=torch.int64)
    for row, (_, sentence) in enumerate(questions):
        for at, word in enumerate(sentence):
            if unknown is None:
                numbers.setdefault(word, len(numbers) + 2)
            tokens[row, at] = numbers.get(word, 1)
    return Questions(tokens, torch.tensor([kind for kind, _ in questions]))
