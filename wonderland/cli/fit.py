"""fit: learn from data and leave a run that can be trusted."""

import argparse
import shlex
from typing import Any

from wonderland.cli import flags


def options(verb: argparse.ArgumentParser) -> None:
    """Flags of fit: where, the kind of data, and training."""
    from wonderland.kinds import NAMES, options_of
    from wonderland.road.training import Training

    verb.add_argument("source", nargs="?", help="a file, a folder, or a bundled set such as digits")
    verb.add_argument("--out", metavar="DIR", help="run folder (default: a free one under runs/)")
    verb.add_argument("--resume", metavar="DIR", help="continue the run in this folder, exactly where it was cut")
    verb.add_argument("--overwrite", action="store_true", help="begin again in a folder that holds a run")
    verb.add_argument("--kind", help=f"what the data are (default: inferred): {', '.join(NAMES)}", metavar="KIND")
    verb.add_argument("--tensorboard", action="store_true", help="also write TensorBoard files")
    verb.add_argument("--quiet", action="store_true", help="say only what went wrong")
    data = verb.add_argument_group("options of the data (wonderland fit --help KIND shows those of one kind)")
    names = flags.add(data, map(options_of, NAMES))
    names += flags.add(
        verb.add_argument_group("training (the recipe chooses what is left out)"), [Training], skip=names
    )
    verb.set_defaults(names=names)


def kind_help(name: str) -> str:
    """The options of one kind, as `wonderland fit --help KIND` shows them."""
    from wonderland.core.errors import WonderlandError, nearest
    from wonderland.kinds import NAMES, options_of

    if name not in NAMES:
        known = ", ".join(NAMES)
        raise WonderlandError(f"There is no kind {name!r}.{nearest(name, NAMES)} Known are {known}.")
    owner = options_of(name)
    about = f"{name}: {owner.__doc__}"
    parser = argparse.ArgumentParser(
        prog="wonderland fit SOURCE", description=about, add_help=False, usage=argparse.SUPPRESS
    )
    flags.add(parser.add_argument_group(f"options of {name}"), [owner])
    return parser.format_help() + "\nOptions of training: wonderland fit --help\n"


def run(given: argparse.Namespace) -> int:
    """Fit, showing the data before, progress during, and the metrics after."""
    from wonderland.cli import show
    from wonderland.road import fit
    from wonderland.train import Stopped

    asked: dict[str, Any] = flags.chosen(given, given.names)
    if given.kind is not None:
        asked["kind"] = given.kind
    talk = None if given.quiet else show.beginning
    try:
        result = fit(
            given.source,
            out=given.out,
            resume=given.resume,
            overwrite=given.overwrite,
            progress=not given.quiet,
            tensorboard=given.tensorboard,
            talk=talk,
            **asked,
        )
    except Stopped as stop:
        raise Stopped(
            f"{stop} Continue with: wonderland fit --resume {shlex.quote(str(stop.folder))}", stop.signum, stop.folder
        ) from None
    if not given.quiet:
        show.ending(result)
    return 0
