"""The options of `fit` for type checkers, written from the classes that own them by `python -m wonderland.road.typed`."""

from pathlib import Path
from typing import Any, TypedDict


class FitOptions(TypedDict, total=False):
    """Options of training and of every kind of data."""

    # begin
    kind: str | None
    optimizer: str | Any | None
    schedule: str | Any | None
    epochs: float | None
    steps: int | None
    budget: float | str | None
    lr: float | str | None
    weight_decay: float | None
    batch_size: int | None
    clip: float | None
    accumulate: int | None
    precision: str | None
    patience: int | None
    threads: int | None
    device: str | None
    level: float | None
    seed: int | None
    strict: bool | None
    split: str | None
    task: str | None
    group: str | None
    time: str | None
    keep: str | list[str] | tuple[str, ...] | None
    drop: str | list[str] | tuple[str, ...] | None
    size: int | None
    workers: int | None
    column: str | None
    tokens: str | None
    vocab: int | None
    context: int | None
    start: str | Path | None
    method: str | None
    lines: bool | None
    tokenizer: str | Path | None
    # end


def written() -> str:
    """The lines between begin and end: one for each option, a type for each."""
    from wonderland.core.options import described
    from wonderland.kinds import KINDS
    from wonderland.road.training import Training

    owners = [Training, *(kind.Options for kind in KINDS.values())]
    types: dict[str, list[str]] = {"kind": ["str", "None"]}
    for owner in owners:
        for name, about in described(owner).items():
            names = [
                {"tuple": "str | list[str] | tuple[str, ...]"}.get(kind.__name__, kind.__name__) for kind in about.types
            ]
            names += {
                "budget": ["str"],
                "start": ["Path"],
                "tokenizer": ["Path"],
                "optimizer": ["Any"],
                "schedule": ["Any"],
            }.get(name, [])
            types.setdefault(name, [])
            types[name] += [one for one in [*names, "None"] if one not in types[name]]
    skipped = ("model", "test", "target")  # named in the signature of fit
    return "".join(f"    {name}: {' | '.join(kinds)}\n" for name, kinds in types.items() if name not in skipped)


if __name__ == "__main__":
    file = Path(__file__)
    before, rest = file.read_text().split("    # begin\n", 1)
    file.write_text(f"{before}    # begin\n{written()}    # end{rest.split('    # end', 1)[1]}")
