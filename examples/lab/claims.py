"""Stated numbers: a lab returns what it measured beside what it states, and fails when one is missed."""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from wonderland.core import write_text


@dataclass(frozen=True)
class Claim:
    """A sentence with its number, and whether the measurement agrees."""

    words: str
    measured: str
    met: bool

    def __str__(self) -> str:
        return f"{self.words} - {'reached' if self.met else 'MISSED'}, {self.measured}"


def about(words: str, measured: float, stated: float, within: float) -> Claim:
    """A number that is reached up to a distance."""
    return Claim(f"{words}: {stated:g} (within {within:g})", f"{measured:.7g}", abs(measured - stated) <= within)


def below(words: str, measured: float, bound: float) -> Claim:
    """A number that stays below a bound."""
    return Claim(f"{words}: below {bound:g}", f"{measured:.3g}", measured < bound)


def above(words: str, measured: float, bound: float) -> Claim:
    """A number that passes a bound."""
    return Claim(f"{words}: above {bound:g}", f"{measured:.4g}", measured > bound)


def equal(words: str, measured: Any, stated: Any) -> Claim:
    """Something that is exactly as stated."""
    return Claim(f"{words}: {stated}", f"{measured}", measured == stated)


Lab = Callable[[], tuple[list[Claim], str, dict[str, str]]]


def run(name: str, words: str | None, lab: Lab, given: Sequence[str] | None = None) -> int:
    """Run a lab: print its table and its stated numbers, write its pictures; 0 when every number is reached, else 1."""
    parser = argparse.ArgumentParser(prog=f"python -m examples.{name}", description=words)
    parser.add_argument("--out", default=f"runs/{name}", help="the folder where the pictures go")
    out = Path(parser.parse_args(given).out)
    torch.set_num_threads(1)
    claims, report, pictures = lab()
    out.mkdir(parents=True, exist_ok=True)
    for title, picture in pictures.items():
        write_text(str(out / f"{title}.svg"), picture)
    told = "\n".join(map(str, claims))
    print(f"{report}\n\n{told}\n\nPictures: {', '.join(str(out / f'{title}.svg') for title in pictures)}")
    return 0 if all(claim.met for claim in claims) else 1
