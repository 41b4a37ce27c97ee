"""evaluate: measure a run on data whose truth is known."""

import argparse
import json


def options(verb: argparse.ArgumentParser) -> None:
    """What can be said to evaluate."""
    verb.add_argument("run_folder", metavar="RUN", help="a run folder")
    verb.add_argument("source", metavar="DATA", help="rows or images with their true answers")
    verb.add_argument("--level", type=float, help="level of sets and intervals (default: the run's)")
    verb.add_argument("--json", action="store_true", help="print everything as JSON")


def run(found: argparse.Namespace) -> int:
    """Evaluate and show the table of metrics."""
    from wonderland.core.precheck import precheck

    precheck(found.run_folder)  # a hostile folder is refused before torch has even been loaded
    from wonderland.cli import show
    from wonderland.ship import load

    run = load(found.run_folder)
    measured = run.evaluate(found.source, level=found.level)
    if found.json:
        print(json.dumps(measured, indent=2))
    else:
        show.noticed(run.noticed)
        show.measured(f"{found.source}, {show.counted(measured['rows'], 'row')}", measured)
    return 0
