"""generate: let a language model write on after a prompt, or a translator write what a text becomes."""

import argparse
import sys
from pathlib import Path
from typing import Any


def options(verb: argparse.ArgumentParser) -> None:
    """What can be said to generate."""
    verb.add_argument("run_folder", metavar="RUN", help="the run folder of a language model or a translator")
    verb.add_argument(
        "--prompt", default="", help="the text to go on from (default: the beginning of a text), or to translate"
    )
    verb.add_argument("--count", type=int, help="how many tokens at most (default 200)")
    sampling(verb)
    verb.add_argument("--beams", type=int, metavar="N", help="search for the likeliest text with N at once")
    verb.add_argument("--matches", metavar="REGEX", help="write only what this regular expression matches")
    verb.add_argument("--schema", metavar="FILE", help="write only JSON that is valid for the JSON schema in this file")
    verb.add_argument("--stop", metavar="TEXT", action="append", help="end before this text; may be repeated")
    verb.add_argument("--no-echo", action="store_true", help="write what is new only, without the prompt")


def sampling(verb: argparse.ArgumentParser) -> None:
    """How tokens are chosen."""
    verb.add_argument("--temperature", type=float, help="0 takes the likeliest token (default 0.8)")
    verb.add_argument("--top-k", type=int, metavar="K", help="choose among the K likeliest tokens only")
    verb.add_argument("--top-p", type=float, metavar="P", help="choose among the tokens that hold P of the probability")
    verb.add_argument(
        "--min-p", type=float, metavar="P", help="leave out tokens with less than P of the best one's share"
    )
    verb.add_argument("--typical", type=float, metavar="P", help="choose among tokens as surprising as is usual")
    verb.add_argument("--repetition-penalty", type=float, metavar="X", help="above 1, what was said is said less again")
    verb.add_argument("--seed", type=int, help="the same seed gives the same text (default 0)")


def chosen(given: argparse.Namespace) -> dict[str, Any]:
    """The sampling options that were given."""
    names = ("temperature", "top_k", "top_p", "min_p", "typical", "repetition_penalty", "seed")
    return {name: vars(given)[name] for name in names if vars(given)[name] is not None}


def run(given: argparse.Namespace) -> int:
    """Write to the terminal as the text comes."""
    ability = opened(given.run_folder, "generate")
    asked = {"count": given.count, "stop": given.stop, "matches": given.matches, "schema": given.schema}
    ability.check(asked, given.prompt)
    options = chosen(given) | _constraints(given)
    if given.beams is not None:
        options["beams"] = given.beams
    elif ability.temperature is not None:
        options = {"temperature": ability.temperature} | options
    if given.stop:
        options["stop"] = given.stop
    prompt, cut = ability.fitted(given.prompt, given.count)
    for sentence in (unknown_tokens(ability, given.prompt), cut):
        if sentence:
            print(f"wonderland: {sentence}", file=sys.stderr)
    texts = (
        ability.write(prompt, given.count, **options)
        if given.beams is None
        else [ability.generate(prompt, given.count, **options)]
    )
    if ability.echoes and not given.no_echo:
        sys.stdout.write(given.prompt)
    for text in texts:
        sys.stdout.write(printable(text))
        sys.stdout.flush()
    sys.stdout.write("\n")
    return 0


def unknown_tokens(ability: Any, text: str) -> str:
    """What to say of tokens that are not in the vocabulary; nothing if there are none."""
    lost = ability.unknown(text)
    if lost == 1:
        return "1 token of the prompt is not in the vocabulary and counts as unknown."
    return f"{lost} tokens of the prompt are not in the vocabulary and count as unknown." if lost else ""


def _constraints(given: argparse.Namespace) -> dict[str, Any]:
    """What the text is to match, of the options."""
    if given.schema is None:
        return {} if given.matches is None else {"matches": given.matches}
    from wonderland.core import WonderlandError, read_json

    if given.matches is not None:
        raise WonderlandError("A text is held to one of --matches and --schema.")
    return {"schema": read_json(Path(given.schema))}


def opened(folder: str, ability: str) -> Any:
    """An ability of a run; a run that lacks it is refused in a sentence."""
    from wonderland.core.precheck import precheck

    precheck(folder)  # a hostile folder is refused before torch has even been loaded
    from wonderland.ship import load

    return load(folder).ability(ability)


def printable(text: str) -> str:
    """Text without control characters, which could take over a terminal.

    >>> printable("a\\x1b[2Jb\\n")
    'a\\ufffd[2Jb\\n'
    """
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)
