"""Determinism: the same input gives the same bits."""

import torch

from wonderland.laws.compare import gap, same_bits, weighted_gradients
from wonderland.laws.subject import BLOCK_DTYPE, Subject, law
from wonderland.laws.verdict import Verdict


@law(dtype=BLOCK_DTYPE, compares=False)
def determinism(subject: Subject) -> Verdict:
    """The same input gives bitwise equal outputs and gradients, whatever the state of the random generators."""
    if subject.writes:
        return subject.verdict(
            float("inf"), 0.0, f"it writes into {subject.writes}, so a second call would see other numbers"
        )
    leaves = [value for _, value in subject.parameters()]
    first = subject.run()
    weights = subject.noise(first.detach())
    before = weighted_gradients(first, weights, leaves)
    for occasion in ("when called again", "after random numbers were seeded anew"):
        if occasion.startswith("after"):
            torch.manual_seed(20_231)
        again = subject.run()
        if not same_bits(again, first):
            _, amount, place = gap(again, first)
            return subject.verdict(amount, 0.0, f"{subject.place(place)} moved by {amount:.2g} {occasion}")
        after = weighted_gradients(again, weights, leaves)
        for (name, _), gradient, reference in zip(subject.parameters(), after, before, strict=True):
            if not same_bits(gradient, reference):
                return subject.verdict(gap(gradient, reference)[1], 0.0, f"the gradient of {name} moved {occasion}")
    return subject.verdict(0.0, 0.0)
