"""How the battery collects blocks and checks laws on them."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path

import torch
from torch import nn

from wonderland.laws import LAWS, Example, Verdict

SHORT, LONG = (1, 7), (64, 129)
# Laws that a block must claim if it satisfies them.
STRUCTURAL = (
    "causality",
    "strict_causality",
    "streaming",
    "batch_independence",
    "padding_invariance",
    "permutation_equivariance",
    "permutation_invariance",
    "shift_equivariance",
    "scale_invariance",
)


@dataclass(frozen=True)
class Case:
    """One block of the battery."""

    name: str
    factory: Callable[[], nn.Module]
    example: Callable[[int], Example] | None = None
    as_built: bool = False

    def build(self) -> nn.Module:
        """The block, the same in every process, with every parameter moved a little."""
        torch.manual_seed(0)
        block = self.factory()
        if not self.as_built:
            with torch.no_grad():
                for value in block.parameters():
                    value += 0.1 * torch.randn_like(value)
        return block

    def tried_on(self, block: nn.Module, length: int) -> Example:
        """What it is tried on."""
        return self.example(length) if self.example else Example.floats(3, length, block.dim, seed=length)

    def promises(self) -> list[str]:
        """The names of the laws that the block claims."""
        return [law.__name__ for law in self.build().laws()]


def collect(folder: Path, package: str) -> list[Case]:
    """Every case of a folder, in the order of their names."""
    found = []
    for path in sorted(folder.glob("*.py")):
        if path.stem == "__init__":
            continue
        try:
            topic = importlib.import_module(f"{package}.{path.stem}")
        except Exception as error:
            found.append(Case(path.stem, partial(_fail, error)))
            continue
        examples, as_built = getattr(topic, "EXAMPLES", {}), getattr(topic, "AS_BUILT", ())
        found += [
            Case(f"{path.stem}-{name}", factory, examples.get(name), name in as_built)
            for name, factory in topic.CASES.items()
        ]
    return found


def _fail(error: Exception) -> nn.Module:
    raise error


def claims(case: Case) -> tuple[str, ...]:
    """The laws to try; none for a block that cannot be built, which the tests that build it will tell."""
    return _known(case)[1]


@cache
def _known(case: Case) -> tuple[type, tuple[str, ...]]:
    try:
        block = case.build()
        return type(block), tuple(law.__name__ for law in block.laws())
    except Exception:
        return nn.Module, ()


@cache
def cases() -> tuple[Case, ...]:
    """The blocks of the house."""
    return tuple(collect(Path(__file__).parent / "cases", "tests.laws.cases"))


def first_of_their_class(found: tuple[Case, ...]) -> list[Case]:
    """One case for each class: for laws that cost seconds."""
    seen: dict[type, Case] = {}
    for case in found:
        if claims(case):
            seen.setdefault(_known(case)[0], case)
    return list(seen.values())


def judged(
    case: Case, law: str, lengths: tuple[int, ...], *, block: nn.Module | None = None, **options
) -> list[Verdict]:
    """The verdicts of one law at several lengths, on a block that may be built already (laws work on copies)."""
    block = case.build() if block is None else block
    verdicts = [LAWS[law](block, case.tried_on(block, length), **options) for length in lengths]
    return [
        replace(verdict, witness=f"{verdict.witness} (length {length})")
        for verdict, length in zip(verdicts, lengths, strict=True)
    ]


def unproven(case: Case, verdicts: list[Verdict], block: nn.Module | None = None) -> list[str]:
    """Laws that say nothing about the block: not applicable at the lengths that were tried, nor at one where most are."""
    holding = {verdict.law for verdict in verdicts if verdict.outcome == "holds"}
    silent = [law for law in dict.fromkeys(verdict.law for verdict in verdicts) if law not in holding]
    return [
        law
        for law in silent
        if law not in ("gradients", "finiteness") and judged(case, law, (40,), block=block)[0].outcome != "holds"
    ]


def unclaimed(case: Case) -> list[str]:
    """Laws that hold for the block, at two lengths, and that it does not claim."""
    block, promised = case.build(), case.promises()
    found = []
    for law in STRUCTURAL:
        if law not in promised and all(
            LAWS[law](block, case.tried_on(block, length)).outcome == "holds" for length in (7, 20)
        ):
            found.append(law)
    return found
