"""Few-shot classification: a language model sees examples in its prompt, and says which label is the likeliest next."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from wonderland.core import WonderlandError, permutation
from wonderland.generation.prompts import context as positions
from wonderland.nn.contract.state import rows as state_rows

MOST = 400  # rows that are classified, unless more are asked for


@dataclass(frozen=True)
class FewShot:
    """What `few_shot` measured: labels, their probabilities for each row (rows, labels), and the row that each belongs to."""

    labels: list[str]
    probabilities: Tensor
    truth: Tensor
    shots: int
    cut: int

    @property
    def accuracy(self) -> float:
        """The share of rows whose likeliest label is theirs."""
        return float((self.probabilities.argmax(1) == self.truth).double().mean())

    @property
    def loss(self) -> float:
        """The mean log loss."""
        chosen = self.probabilities.gather(1, self.truth.unsqueeze(1))
        return float(-chosen.clamp_min(1e-12).log().mean())

    @property
    def majority(self) -> float:
        """The share of the most frequent label."""
        return float(torch.bincount(self.truth).max() / len(self.truth))

    def record(self) -> dict[str, float]:
        """The measures by name."""
        return {"accuracy": self.accuracy, "log_loss": self.loss, "share_of_the_most_frequent": self.majority}


def few_shot(
    model: Any,
    encode: Callable[[str], list[int]],
    texts: Sequence[str],
    labels: Sequence[str],
    *,
    shots: int,
    seed: int = 0,
    held: int | None = None,
    most: int = MOST,
    begin: Sequence[int] = (),
    heading: tuple[str, str] = ("Text", "Label"),
    progress: Callable[[int, int], None] | None = None,
) -> FewShot:
    r"""Classify texts by the likelihood of each label after a prompt with `shots` examples.

    .. math:: p(c \mid x) \propto \prod_i p(l^c_i \mid \text{examples}, x, l^c_{<i})

    l^c are the tokens of label c. The prompt holds `shots` texts with their labels, the labels in turn, and then the text:
    "Text: ... Label: ..." lines. Examples are drawn by the seed and are never classified; of the others, `most` are.
    Where a model's positions end, the fewest examples that are too many are left out, then the beginning of a text; `cut`
    counts the texts. `held` rows, `shots` unless given, are kept for examples: with the same number, other shots are measured on
    the same rows. Paper: Brown et al., 2020.
    """
    classes = sorted(set(labels))
    if len(classes) < 2:
        raise WonderlandError(
            "Few-shot evaluation compares labels, and these texts have only one: give labelled texts."
        )
    if shots < 0 or len(texts) <= max(shots, held or 0):
        raise WonderlandError(
            f"There are {len(texts)} texts, so shots is a number from 0 to {len(texts) - 1}, not {shots}."
        )
    order = permutation(seed, 0, len(texts)).tolist()
    examples, rest = _drawn(order, labels, classes, shots if held is None else max(held, shots))
    examples, rest = examples[:shots], rest[:most]
    names = [encode(f" {label}") or encode(label) for label in classes]
    end = max(map(len, names))
    limit = positions(model)
    shown = [encode(f"{heading[0]}: {texts[i]}\n{heading[1]}: {labels[i]}\n\n") for i in examples]
    before, asked = list(begin), encode(f"\n{heading[1]}:")
    heads = encode(f"{heading[0]}: ")
    if limit is not None:
        # At least a half of the room is for the text that is asked about.
        while shown and len(before) + sum(map(len, shown)) > limit // 2:
            shown.pop()
    before += [token for ids in shown for token in ids]
    prefix = None
    model.eval()
    with torch.no_grad():
        if before:
            _, prefix = model.stream(torch.tensor([before]))
        scores, cut = [], 0
        for number, row in enumerate(rest):
            ids = encode(texts[row])
            room = None if limit is None else max(0, limit - len(before) - len(heads) - len(asked) - end)
            if room is not None and len(ids) > room:
                ids, cut = ids[len(ids) - room :], cut + 1
            scores.append(_scores(model, [*heads, *ids, *asked], names, prefix))
            if progress is not None:
                progress(number + 1, len(rest))
    truth = torch.tensor([classes.index(labels[row]) for row in rest])
    return FewShot(classes, torch.stack(scores).softmax(1), truth, len(shown), cut)


def _drawn(order: list[int], labels: Sequence[str], classes: list[str], shots: int) -> tuple[list[int], list[int]]:
    """Rows for the prompt, the labels in turn, and the others."""
    by_class = {name: [row for row in order if labels[row] == name] for name in classes}
    examples: list[int] = []
    while len(examples) < shots:
        for name in classes:
            if by_class[name] and len(examples) < shots:
                examples.append(by_class[name].pop(0))
    taken = set(examples)
    return examples, [row for row in order if row not in taken]


def _scores(model: Any, prompt: list[int], names: list[list[int]], prefix: Any) -> Tensor:
    """The log likelihood of each label after the prompt, from the state after the examples."""
    logits, state = model.stream(torch.tensor([prompt]), prefix)
    first = logits[0, -1].double().log_softmax(0)
    longest = max(map(len, names))
    scores = torch.tensor([float(first[name[0]]) for name in names], dtype=torch.float64)
    if longest == 1:
        return scores
    # The other tokens of all labels at once, one row a label.
    tokens = torch.tensor([[*name[:-1], *[0] * (longest - len(name))] for name in names])
    mask = torch.arange(longest - 1) < torch.tensor([[len(name) - 1] for name in names])
    many = state_rows(state, torch.zeros(len(names), dtype=torch.int64))
    logits, _ = model.stream(tokens, many, mask)
    after = logits.double().log_softmax(2)
    for index, name in enumerate(names):
        scores[index] += sum(float(after[index, i, token]) for i, token in enumerate(name[1:]))
    return scores
