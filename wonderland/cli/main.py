"""`wonderland VERB ...`: parses the command line, runs the verb, and prints errors as sentences."""

import argparse
import os
import sys
from typing import Any, NoReturn

from wonderland.cli import (
    chat,
    check,
    cost,
    doctor,
    embed,
    evaluate,
    export,
    fit,
    generate,
    inspect,
    merge,
    models,
    neighbours,
    predict,
    scaling,
    search,
    serve,
    shift,
    sign,
    studio,
    tokenize,
    trace,
    verify,
)
from wonderland.core.errors import WonderlandError, nearest, printable
from wonderland.core.memory import is_out_of_memory
from wonderland.version import __version__

VERBS = (
    fit,
    search,
    cost,
    scaling,
    predict,
    evaluate,
    shift,
    export,
    serve,
    studio,
    generate,
    chat,
    embed,
    neighbours,
    inspect,
    models,
    merge,
    tokenize,
    check,
    trace,
    doctor,
    sign,
    verify,
)


class Parser(argparse.ArgumentParser):
    """argparse with error messages that say what is wrong, what is expected, and where to look."""

    def error(self, message: str) -> NoReturn:
        start, _, names = message.partition(": ")
        if start == "the following arguments are required":
            message = f"{names.replace(', ', ' and ')} {'are' if ', ' in names else 'is'} missing"
        raise WonderlandError(f"{message}. See: {self.prog} --help")

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        try:
            return super()._get_value(action, arg_string)  # pyright: ignore
        except argparse.ArgumentError:
            words = {int: "a whole number", float: "a number"}.get(action.type)  # pyright: ignore
            self.error(f"{_flag(action)} must be {words or action.type}, not {arg_string[:80]!r}")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        known = [str(choice) for choice in action.choices]
        hint = nearest(str(value), known)
        self.error(f"There is no {_flag(action).strip('-')} {value!r}.{hint} Known are {', '.join(known)}")

    def _match_argument(self, action: argparse.Action, arg_strings_pattern: str) -> int:
        try:
            return super()._match_argument(action, arg_strings_pattern)  # pyright: ignore
        except argparse.ArgumentError:
            self.error(f"{_flag(action)} needs a value")


def _flag(action: argparse.Action) -> str:
    """An option by its longest name, an argument by the name that the help shows."""
    return max(action.option_strings, key=len, default=str(action.metavar or action.dest))


def parser() -> Parser:
    """Every verb with its options."""
    top = Parser(
        prog="wonderland",
        description="From data of any kind to a model that can be trusted and shipped.",
        epilog="Try: wonderland fit digits",
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"wonderland {__version__}")
    verbs = top.add_subparsers(title="verbs", metavar="VERB", parser_class=Parser)
    for module in VERBS:
        name = module.__name__.rsplit(".", 1)[1]
        summary = (module.__doc__ or "").splitlines()[0].split(": ", 1)[1]
        verb = verbs.add_parser(name, help=summary, description=summary, allow_abbrev=False)
        module.options(verb)
        verb.set_defaults(run=module.run, parser=verb)
    return top


def parse(words: list[str]) -> argparse.Namespace:
    """Read the command line; for an unknown verb or option the error names the nearest one."""
    if words[:1] == ["fit"] and len(words) == 3 and words[1] in ("--help", "-h"):
        print(fit.kind_help(words[2]), end="")
        raise SystemExit(0)
    top = parser()
    names = [module.__name__.rsplit(".", 1)[1] for module in VERBS]
    if words and not words[0].startswith("-") and words[0] not in names:
        raise WonderlandError(f"There is no verb {words[0]!r}.{nearest(words[0], names)} See: wonderland --help")
    args, unknown = top.parse_known_args(words)
    if unknown:
        chosen = getattr(args, "parser", top)
        known = [option for action in chosen._actions for option in action.option_strings]
        hint = nearest(unknown[0].split("=")[0], known)
        noun = "option" if unknown[0].startswith("-") else "argument"
        raise WonderlandError(f"Unknown {noun} {unknown[0]!r}.{hint} See: {chosen.prog} --help")
    args.words = words
    return args


def main(words: list[str] | None = None) -> int:
    """Run one command; returns its exit code: 0 success, 1 a broken law, a shift or a problem found by doctor, 2 bad input, 130 or 143 stopped."""
    try:
        args = parse(sys.argv[1:] if words is None else words)
        if not hasattr(args, "run"):
            parser().print_help()
            return 0
        return args.run(args)
    except WonderlandError as error:
        print(f"wonderland: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            name = printable(os.fsdecode(error.filename)) if isinstance(error.filename, str | bytes) else "the output"
            print(f"wonderland: {name} cannot be used ({error.strerror}).", file=sys.stderr)
            return 2
        # The reader of our output has closed the pipe, so nothing more can be printed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        print(
            "wonderland: there is not enough memory. Take smaller batches (--batch-size, --accumulate), a smaller model, or fewer rows; a run that had begun "
            "continues with --resume.",
            file=sys.stderr,
        )
        return 2
    except KeyboardInterrupt as stop:
        print(f"\nwonderland: {printable(str(stop))}" if str(stop) else "\nwonderland: stopped.", file=sys.stderr)
        return 128 + getattr(stop, "signum", 2)


if __name__ == "__main__":
    sys.exit(main())
