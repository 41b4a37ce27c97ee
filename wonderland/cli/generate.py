"""generate: continue a prompt with a language model, translate a text, or draw new examples from a generative model."""

import argparse
import sys
from pathlib import Path
from typing import Any

from wonderland.core.errors import printable

DRAWING = ("samples", "out", "label", "guidance")  # flags of generative models
WRITING = ("prompt", "count", "beams", "matches", "schema", "stop", "no_echo", "temperature", "top_k", "top_p", "min_p", "typical",
           "repetition_penalty")  # fmt: skip


def options(verb: argparse.ArgumentParser) -> None:
    """Flags of generate."""
    verb.add_argument(
        "run_folder", metavar="RUN", help="the run folder of a language model, a translator or a generative model"
    )
    verb.add_argument("--prompt", default="", help="the text to continue (default: empty), or to translate")
    verb.add_argument("--count", type=int, help="largest number of tokens (default 200)")
    verb.add_argument(
        "-n", "--samples", type=int, metavar="N", help="number of new examples of a generative model (default 64)"
    )
    verb.add_argument(
        "-o", "--out", metavar="FILE", help="where new examples go: images to .png, .npy or a folder, rows to .csv"
    )
    verb.add_argument("--label", metavar="CLASS", help="draw examples of this class (default: classes take turns)")
    verb.add_argument("--guidance", type=float, metavar="X", help="above 1, examples are more typical of their class")
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
    if getattr(ability, "draws", False):
        return draw(ability, args)
    refuse(args, DRAWING, "This run writes text")
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


def draw(ability: Any, args: argparse.Namespace) -> int:
    """Draw new examples and write them to a file."""
    refuse(args, WRITING, "This run draws examples")
    samples = ability(
        64 if args.samples is None else args.samples, label=args.label, guidance=args.guidance, seed=args.seed or 0
    )
    out = args.out or ability.usual_name
    ability.write(samples, out)
    print(f"{len(samples):,} examples written to {printable(str(out))}")
    return 0


def refuse(args: argparse.Namespace, names: tuple[str, ...], start: str) -> None:
    """Refuse flags that are for other runs."""
    from wonderland.core import WonderlandError

    for name in names:
        if vars(args).get(name) not in (None, "", False):
            flag = name.replace("_", "-")
            raise WonderlandError(f"{start}: leave --{flag} out.")


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
