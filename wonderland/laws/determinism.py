"""Determinism: the same input gives the same bits."""

import torch

from wonderland.laws.compare import gap, same_bits, slopes
from wonderland.laws.subject import OWN, Subject, law
from wonderland.laws.verdict import Verdict


@law(dtype=OWN, compares=False)
def determinism(subject: Subject) -> Verdict:
    """The same input twice gives the same bits, outputs and gradients, and whatever the random numbers stand at."""
    if subject.writes:
        return subject.verdict(
            float("inf"), 0.0, f"it writes into {subject.writes}, so a second call would see other numbers"
        )
    leaves = [value for _, value in subject.parameters()]
    first = subject.run()
    weights = subject.noise(first.detach())
    before = slopes(first, weights, leaves)
    for words in ("when called again", "after random numbers were seeded anew"):
        if words.startswith("after"):
            torch.manual_seed(20_231)
        again = subject.run()
        if not same_bits(again, first):
            _, amount, place = gap(again, first)
            return subject.verdict(amount, 0.0, f"{subject.place(place)} moved by {amount:.2g} {words}")
        after = slopes(again, weights, leaves)
        for (name, _), one, other in zip(subject.parameters(), after, before, strict=True):
            if not same_bits(one, other):
                return subject.verdict(gap(one, other)[1], 0.0, f"the gradient of {name} moved {words}")
    return subject.verdict(0.0, 0.0)
