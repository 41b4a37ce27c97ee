"""fit: train a model on data, calibrate it, and write a run folder with a report."""

import argparse
import os
import shlex
import sys
from typing import Any

from wonderland.cli import flags


def options(verb: argparse.ArgumentParser) -> None:
    """Flags of fit: where, the kind of data, and training."""
    from wonderland.kinds import NAMES, options_of
    from wonderland.road.training import Training

    verb.add_argument("source", nargs="?", help="a file, a folder, or a bundled set such as digits")
    verb.add_argument("--out", metavar="DIR", help="run folder (default: a free one under runs/)")
    verb.add_argument("--resume", metavar="DIR", help="resume the run in this folder exactly")
    verb.add_argument("--overwrite", action="store_true", help="start again in a folder that holds a run")
    verb.add_argument("--kind", help=f"kind of data (default: inferred): {', '.join(NAMES)}", metavar="KIND")
    verb.add_argument("--processes", type=int, help="processes on this machine that share each batch", metavar="N")
    verb.add_argument("--shard", action="store_true", help="divide the weights among the processes (FSDP)")
    verb.add_argument(
        "--restarts", type=int, default=3, metavar="N",
        help="how often training begins again from its checkpoint when a process dies (default 3)",
    )  # fmt: skip
    verb.add_argument("--tensorboard", action="store_true", help="also write TensorBoard files")
    verb.add_argument("--quiet", action="store_true", help="print errors only")
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


def run(args: argparse.Namespace) -> int:
    """Fit, showing the data before, progress during, and the metrics after."""
    from wonderland.checkpoints.config_file import refuse_unknown_family

    if (start := vars(args).get("start")) is not None:
        refuse_unknown_family(start)
    from wonderland.train.parallel.launch import is_launched

    if args.processes is not None and not is_launched():
        return in_processes(args)
    if is_launched() and os.environ["RANK"] != "0":
        args.quiet = True
    return fit_here(args)


def in_processes(args: argparse.Namespace) -> int:
    """The same command in several processes; a new run gets its folder here, so that all of them use it."""
    from wonderland.cli import show
    from wonderland.core.errors import WonderlandError
    from wonderland.road.fitting import free_folder
    from wonderland.train.parallel.launch import launch

    if not 1 <= args.processes <= 1024 or args.restarts < 0:
        raise WonderlandError(
            f"processes is a whole number from 1 to 1024, and restarts at least 0, not {args.processes} and {args.restarts}."
        )
    if args.processes == 1:
        return fit_here(args)
    words = [sys.executable, "-m", "wonderland", *args.words]
    if args.out is None and args.resume is None and args.source is not None:
        words += ["--out", str(free_folder(args.source))]
    return launch(words, args.processes, restarts=args.restarts, say=show.say)


def fit_here(args: argparse.Namespace) -> int:
    """Fit in this process, one of a group where a launcher started several."""
    from wonderland.cli import show
    from wonderland.road import fit
    from wonderland.train import Stopped
    from wonderland.train.parallel import LostProcess
    from wonderland.train.parallel.launch import is_launched

    asked: dict[str, Any] = flags.chosen(args, args.names)
    if args.kind is not None:
        asked["kind"] = args.kind
    on_start = None if args.quiet else show.before_training
    try:
        result = fit(
            args.source,
            out=args.out,
            resume=args.resume,
            overwrite=args.overwrite,
            progress=not args.quiet,
            tensorboard=args.tensorboard,
            on_start=on_start,
            on_measured=None if args.quiet else show.after_training,
            shard=args.shard,
            **asked,
        )
    except LostProcess as lost:
        print(f"wonderland: {lost}", file=sys.stderr)
        return 3
    except Stopped as stop:
        if is_launched() and os.environ["RANK"] != "0":
            return 128 + stop.signum
        raise Stopped(
            f"{stop} Continue with: wonderland fit --resume {shlex.quote(str(stop.folder))}", stop.signum, stop.folder
        ) from None
    if not args.quiet:
        show.after_report(result)
    return 0
