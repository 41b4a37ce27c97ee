"""`wonderland VERB ...`: finds the verb, runs it, and turns errors into a sentence."""

import argparse
import os
import sys
from typing import NoReturn

from wonderland.cli import chat, check, doctor, evaluate, fit, generate, inspect, models, predict, tokenize, trace
from wonderland.core.errors import WonderlandError, nearest
from wonderland.version import __version__

VERBS = (fit, predict, evaluate, generate, chat, inspect, models, tokenize, check, trace, doctor)


class Parser(argparse.ArgumentParser):
    """argparse that offers the nearest option when one is misspelt."""

    def error(self, message: str) -> NoReturn:
        raise WonderlandError(f"{message}. See: {self.prog} --help")


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
    """Read the command line; an unknown verb or option is answered with the nearest."""
    if words[:1] == ["fit"] and len(words) == 3 and words[1] in ("--help", "-h"):
        print(fit.kind_help(words[2]), end="")
        raise SystemExit(0)
    top = parser()
    names = [module.__name__.rsplit(".", 1)[1] for module in VERBS]
    if words and not words[0].startswith("-") and words[0] not in names:
        raise WonderlandError(f"There is no verb {words[0]!r}.{nearest(words[0], names)} See: wonderland --help")
    found, rest = top.parse_known_args(words)
    if rest:
        chosen = getattr(found, "parser", top)
        known = [option for action in chosen._actions for option in action.option_strings]
        hint = nearest(rest[0].split("=")[0], known)
        what = "option" if rest[0].startswith("-") else "argument"
        raise WonderlandError(f"Unknown {what} {rest[0]!r}.{hint} See: {chosen.prog} --help")
    return found


def main(words: list[str] | None = None) -> int:
    """Run one command; returns its exit code: 0 well, 1 a law is broken or a model sick, 2 bad input, 130 or 143 stopped."""
    try:
        found = parse(sys.argv[1:] if words is None else words)
        if not hasattr(found, "run"):
            parser().print_help()
            return 0
        return found.run(found)
    except WonderlandError as error:
        print(f"wonderland: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            print(f"wonderland: {error.filename or 'the output'} cannot be used ({error.strerror}).", file=sys.stderr)
            return 2
        # Whoever read our output has left; nothing more can be said to them.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt as stop:
        print(f"\nwonderland: {stop}" if str(stop) else "\nwonderland: stopped.", file=sys.stderr)
        return 128 + getattr(stop, "signum", 2)


if __name__ == "__main__":
    sys.exit(main())
