"""generate: let a language model write on after a prompt, or a translator write what a text becomes."""

import argparse
import sys
from pathlib import Path
from typing import Any

TEMPERATURE = 0.8


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


def chosen(found: argparse.Namespace) -> dict[str, Any]:
    """The sampling options that were given."""
    names = ("temperature", "top_k", "top_p", "min_p", "typical", "repetition_penalty", "seed")
    return {name: getattr(found, name) for name in names if getattr(found, name) is not None}


def run(found: argparse.Namespace) -> int:
    """Write to the terminal as the text comes."""
    run = opened(found.run_folder)
    options = chosen(found) | ({} if found.beams is None else {"beams": found.beams})
    if not hasattr(run, "write"):
        print(printable(_translated(run, found, options)))
        return 0
    options |= _held(found)
    if found.beams is None:
        options = {"temperature": TEMPERATURE} | options
    if told := unknown_tokens(run, found.prompt):
        print(f"wonderland: {told}", file=sys.stderr)
    prompt = run.recent(found.prompt, 1 if found.count is None else max(1, found.count))
    if prompt != found.prompt:
        told = f"the model has room for the last {len(prompt):,} of {len(found.prompt):,} characters of the prompt, and reads these."
        print(f"wonderland: {told}", file=sys.stderr)
    made = run.write if found.beams is None else lambda *given, **how: [run.generate(*given, **how)]
    texts = made(prompt, found.count, stop=found.stop or (), **options)
    if not found.no_echo:
        sys.stdout.write(found.prompt)
    for text in texts:
        sys.stdout.write(printable(text))
        sys.stdout.flush()
    sys.stdout.write("\n")
    return 0


def unknown_tokens(run: Any, text: str) -> str:
    """What to say of tokens that are not in the vocabulary; nothing if there are none."""
    lost = run.unknown(text)
    if lost == 1:
        return "1 token of the prompt is not in the vocabulary and counts as unknown."
    return f"{lost} tokens of the prompt are not in the vocabulary and count as unknown." if lost else ""


def _held(found: argparse.Namespace) -> dict[str, Any]:
    """What the text is to match, of the options."""
    if found.schema is None:
        return {} if found.matches is None else {"matches": found.matches}
    from wonderland.core import WonderlandError, read_json

    if found.matches is not None:
        raise WonderlandError("A text is held to one of --matches and --schema.")
    return {"schema": read_json(Path(found.schema))}


def _translated(run: Any, found: argparse.Namespace, options: dict[str, Any]) -> str:
    from wonderland.core import WonderlandError

    for name in ("count", "stop", "matches", "schema"):
        if getattr(found, name) is not None:
            raise WonderlandError(f"--{name} is for language models; {found.run_folder} is a translator.")
    if not found.prompt.strip():
        raise WonderlandError("There is no text to translate: give it with --prompt.")
    return run.translate(found.prompt, **options)


def opened(folder: str, *, translators: bool = True) -> Any:
    """A run that writes; any other is refused in a sentence."""
    from wonderland.core.precheck import precheck

    precheck(folder)  # a hostile folder is refused before torch has even been loaded
    from wonderland.core import WonderlandError
    from wonderland.ship import load

    found = load(folder)
    if hasattr(found, "translate") and not translators:
        raise WonderlandError(
            f"The run in {folder} is a translator, and does not chat: wonderland generate {folder} --prompt TEXT translates."
        )
    if not hasattr(found, "write") and not (translators and hasattr(found, "translate")):
        raise WonderlandError(f"The run in {folder} is no language model: it predicts, and does not write.")
    return found


def printable(text: str) -> str:
    """Text without control characters, which could take over a terminal.

    >>> printable("a\\x1b[2Jb\\n")
    'a\\ufffd[2Jb\\n'
    """
    return "".join(c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in text)
