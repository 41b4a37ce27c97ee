"""evaluate: measure a run on data whose targets are known."""

import argparse
import json

from wonderland.cli import flags
from wonderland.kinds.options import FileOptions


def options(verb: argparse.ArgumentParser) -> None:
    """Flags of evaluate."""
    verb.add_argument("run_folder", metavar="RUN", help="a run folder")
    verb.add_argument("source", metavar="DATA", help="rows or images with their targets")
    verb.add_argument(
        "--label-shift",
        metavar="METHOD",
        help="correct probabilities for other shares of classes, estimated from the new rows: em or black-box",
    )
    verb.add_argument("--level", type=float, help="level of sets and intervals (default: the run's)")
    verb.add_argument("--json", action="store_true", help="print everything as JSON")
    group = verb.add_argument_group("how a table file is written")
    verb.set_defaults(names=flags.add(group, [FileOptions], skip=["strict"]))


def run(args: argparse.Namespace) -> int:
    """Evaluate and show the table of metrics."""
    from wonderland.core.precheck import precheck

    precheck(args.run_folder)  # refuses a hostile folder before torch is loaded
    from wonderland.cli import show
    from wonderland.ship import load

    run = load(args.run_folder)
    measured = run.evaluate(
        args.source, level=args.level, label_shift=args.label_shift, **flags.chosen(args, args.names)
    )
    if args.json:
        print(json.dumps(measured, indent=2))
    else:
        show.print_findings(run.noticed)
        show.evaluation_table(f"{args.source}, {show.counted(measured['rows'], 'row')}", measured)
    return 0
