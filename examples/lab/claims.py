"""Claims: a lab compares measured numbers with stated ones, and fails if one is missed."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from wonderland.core import WonderlandError, write_text


@dataclass(frozen=True)
class Claim:
    """A stated number in words, the measured one, and whether it is met."""

    words: str
    measured: str
    met: bool

    def __str__(self) -> str:
        return f"{self.words} - {'reached' if self.met else 'MISSED'}, {self.measured}"


def about(words: str, measured: float, stated: float, within: float) -> Claim:
    """A number within a tolerance."""
    return Claim(f"{words}: {stated:g} (within {within:g})", f"{measured:.7g}", abs(measured - stated) <= within)


def below(words: str, measured: float, bound: float) -> Claim:
    """A number below a bound."""
    return Claim(f"{words}: below {bound:g}", f"{measured:.5g}", measured < bound)


def above(words: str, measured: float, bound: float) -> Claim:
    """A number above a bound."""
    return Claim(f"{words}: above {bound:g}", f"{measured:.4g}", measured > bound)


def equal(words: str, measured: Any, stated: Any) -> Claim:
    """A value that equals the stated one."""
    return Claim(f"{words}: {stated}", f"{measured}", measured == stated)


Lab = Callable[..., tuple[list[Claim], str, dict[str, str]]]
DATA = {"--data": {"help": "the file, or the folder that holds it; else the folder in WONDERLAND_DATA, else ./data"}}


def run(
    name: str,
    words: str | None,
    lab: Lab,
    given: Sequence[str] | None = None,
    more: Mapping[str, Mapping[str, Any]] | None = None,
) -> int:
    """Run a lab: print its table and its stated numbers, write its pictures.

    Returns 0 if every number is reached, 1 if one is missed, 2 if the lab could not run. `more` are options of the lab, as
    arguments of `add_argument`; the lab is called with their values.
    """
    parser = argparse.ArgumentParser(prog=f"python -m examples.{name}", description=words)
    parser.add_argument("--out", default=f"runs/{name}", help="the folder where the pictures go")
    for option, settings in (more or {}).items():
        parser.add_argument(option, **settings)
    options = vars(parser.parse_args(given))
    out = Path(options.pop("out"))
    torch.set_num_threads(1)
    try:
        claims, report, pictures = lab(**options)
    except WonderlandError as error:
        print(error, file=sys.stderr)
        return 2
    out.mkdir(parents=True, exist_ok=True)
    for title, picture in pictures.items():
        write_text(str(out / f"{title}.svg"), picture)
    results = "\n".join(map(str, claims))
    print(f"{report}\n\n{results}\n\nPictures: {', '.join(str(out / f'{title}.svg') for title in pictures)}")
    return 0 if all(claim.met for claim in claims) else 1


def spread(values: Sequence[float], digits: int = 4) -> str:
    """Mean and standard deviation over seeds, as text.

    >>> spread([1.0, 2.0, 3.0])
    '2.0000 ± 1.0000 (3 seeds)'
    """
    mean = sum(values) / len(values)
    deviation = (sum((value - mean) ** 2 for value in values) / max(1, len(values) - 1)) ** 0.5
    return f"{mean:.{digits}f} ± {deviation:.{digits}f} ({len(values)} seeds)"
