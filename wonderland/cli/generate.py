"""generate: continue a prompt with a language model, or translate a text."""

import argparse
import sys
from pathlib import Path
from typing import Any

from wonderland.core.errors import printable


def options(verb: argparse.ArgumentParser) -> None:
    """Flags of generate."""
    verb.add_argument("run_folder", metavar="RUN", help="the run folder of a language model or a translator")
    verb.add_argument("--prompt", default="", help="the text to continue (default: empty), or to translate")
    verb.add_argument("--count", type=int, help="largest number of tokens (default 200)")
    add_sampling_flags(verb)
    verb.add_argument("--beams", type=int, metavar="N", help="beam search with N beams")
    verb.add_argument("--matches", metavar="REGEX", help="write only what this regular expression matches")
    verb.add_argument("--schema", metavar="FILE", help="write only JSON that is valid for the JSON schema in this file")
    verb.add_argument("--stop", metavar="TEXT", action="append", help="end before this text; may be repeated")
    verb.add_argument("--no-echo", action="store_true", help="print the new text only, without the prompt")


def add_sampling_flags(verb: argparse.ArgumentParser) -> None:
    """Add the flags of sampling, which generate and chat share."""
    verb.add_argument("--temperature", type=float, help="0 takes the likeliest token (default 0.8)")
    verb.add_argument("--top-k", type=int, metavar="K", help="sample from the K likeliest tokens")
    verb.add_argument(
        "--top-p", type=float, metavar="P", help="sample from the smallest set of tokens with probability P (nucleus)"
    )
    verb.add_argument(
        "--min-p", type=float, metavar="P", help="leave out tokens with less than P times the largest probability"
    )
    verb.add_argument(
        "--typical",
        type=float,
        metavar="P",
        help="typical sampling: tokens of about average surprise, with probability P",
    )
    verb.add_argument(
        "--repetition-penalty", type=float, metavar="X", help="above 1, tokens that occurred become less likely"
    )
    verb.add_argument("--seed", type=int, help="the same seed gives the same text (default 0)")


def sampling_options(args: argparse.Namespace) -> dict[str, Any]:
    """The sampling options that were given."""
    names = ("temperature", "top_k", "top_p", "min_p", "typical", "repetition_penalty", "seed")
    return {name: vars(args)[name] for name in names if vars(args)[name] is not None}


def run(args: argparse.Namespace) -> int:
    """Generate, printing the text as it comes."""
    ability = load_ability(args.run_folder, "generate")
    asked = {"count": args.count, "stop": args.stop, "matches": args.matches, "schema": args.schema}
    ability.check(asked, args.prompt)
    options = sampling_options(args) | _constraints(args)
    if args.beams is not None:
        options["beams"] = args.beams
    elif ability.temperature is not None:
        options = {"temperature": ability.temperature} | options
    if args.stop:
        options["stop"] = args.stop
    prompt, cut = ability.fitted(args.prompt, args.count)
    for sentence in (unknown_tokens(ability, args.prompt), cut):
        if sentence:
            print(f"wonderland: {printable(sentence)}", file=sys.stderr)
    texts = (
        ability.write(prompt, args.count, **options)
        if args.beams is None
        else [ability.generate(prompt, args.count, **options)]
    )
    if ability.echoes and not args.no_echo:
        sys.stdout.write(printable(args.prompt, "\n\t"))
    for text in texts:
        sys.stdout.write(printable(text, "\n\t"))
        sys.stdout.flush()
    sys.stdout.write("\n")
    return 0


def unknown_tokens(ability: Any, text: str) -> str:
    """A warning about tokens that are not in the vocabulary, or ""."""
    count = ability.unknown(text)
    if count == 1:
        return "1 token of the prompt is not in the vocabulary and counts as unknown."
    return f"{count} tokens of the prompt are not in the vocabulary and count as unknown." if count else ""


def _constraints(args: argparse.Namespace) -> dict[str, Any]:
    """The options --matches and --schema, of which one can be given."""
    if args.schema is None:
        return {} if args.matches is None else {"matches": args.matches}
    from wonderland.core import WonderlandError, read_json

    if args.matches is not None:
        raise WonderlandError("Choose one of --matches and --schema.")
    return {"schema": read_json(Path(args.schema), strict=False)}


def load_ability(folder: str, ability: str) -> Any:
    """An ability of the run in a folder; a run without it is an error."""
    from wonderland.core.precheck import precheck

    precheck(folder)  # refuses a hostile folder before torch is loaded
    from wonderland.ship import load

    return load(folder).ability(ability)
