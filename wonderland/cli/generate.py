"""generate: let a language model write on after a prompt, token by token."""

import argparse
import sys
from typing import Any


def options(verb: argparse.ArgumentParser) -> None:
    """What can be said to generate."""
    verb.add_argument("run_folder", metavar="RUN", help="the run folder of a language model")
    verb.add_argument("--prompt", default="", help="the text to go on from (default: the beginning of a text)")
    verb.add_argument("--count", type=int, default=200, help="how many tokens at most (default 200)")
    sampling(verb)
    verb.add_argument("--stop", metavar="TEXT", action="append", help="end before this text; may be repeated")
    verb.add_argument("--no-echo", action="store_true", help="write what is new only, without the prompt")


def sampling(verb: argparse.ArgumentParser) -> None:
    """How tokens are chosen."""
    verb.add_argument("--temperature", type=float, default=0.8, help="0 takes the likeliest token (default 0.8)")
    verb.add_argument("--top-k", type=int, metavar="K", help="choose among the K likeliest tokens only")
    verb.add_argument("--top-p", type=float, metavar="P", help="choose among the tokens that hold P of the probability")
    verb.add_argument(
        "--min-p", type=float, metavar="P", help="leave out tokens with less than P of the best one's share"
    )
    verb.add_argument("--repetition-penalty", type=float, metavar="X", help="above 1, what was said is said less again")
    verb.add_argument("--seed", type=int, default=0, help="the same seed gives the same text (default 0)")


def chosen(found: argparse.Namespace) -> dict[str, Any]:
    """The sampling options that were given."""
    names = ("temperature", "top_k", "top_p", "min_p", "repetition_penalty", "seed")
    return {name: getattr(found, name) for name in names if getattr(found, name) is not None}


def run(found: argparse.Namespace) -> int:
    """Write to the terminal as the text comes."""
    run = opened(found.run_folder)
    if not found.no_echo:
        sys.stdout.write(found.prompt)
    for text in run.write(found.prompt, found.count, stop=found.stop or (), **chosen(found)):
        sys.stdout.write(printable(text))
        sys.stdout.flush()
    sys.stdout.write("\n")
    return 0


def opened(folder: str) -> Any:
    """A run that writes; any other is refused in a sentence."""
    from wonderland.core.glance import glance

    glance(folder)  # a hostile folder is refused before torch has even been loaded
    from wonderland.core import WonderlandError
    from wonderland.ship import load

    found = load(folder)
    if not hasattr(found, "write"):
        raise WonderlandError(f"The run in {folder} is no language model: it predicts, and does not write.")
    return found


def printable(text: str) -> str:
    """Text without control characters, which could take over a terminal.

    >>> printable("a\\x1b[2Jb\\n")
    'a\\ufffd[2Jb\\n'
    """
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)
