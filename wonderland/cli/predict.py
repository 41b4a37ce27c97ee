"""predict: apply a run to new data and write classes, probabilities, sets or intervals."""

import argparse

from wonderland.cli import flags
from wonderland.kinds import NAMES, predict_options_of


def options(verb: argparse.ArgumentParser) -> None:
    """What can be said to predict."""
    verb.add_argument("run_folder", metavar="RUN", help="a run folder")
    verb.add_argument("source", metavar="DATA", help="new rows or images")
    verb.add_argument(
        "-o", "--out", metavar="FILE", help="a .csv, .parquet or .jsonl file (default: the first rows are shown)"
    )
    verb.add_argument("--level", type=float, help="level of sets and intervals (default: the run's)")
    verb.add_argument("--strict", action="store_true", help="stop at cells that would have to be repaired")
    owners = [owner for name in NAMES if (owner := predict_options_of(name)) is not None]
    verb.set_defaults(names=flags.add(verb.add_argument_group("options of kinds of data"), owners))


def run(found: argparse.Namespace) -> int:
    """Predict, telling what had to be repaired in the new data."""
    from wonderland.core.glance import glance

    glance(found.run_folder)  # a hostile folder is refused before torch has even been loaded
    from wonderland.cli import show
    from wonderland.ship import load, read_kind, write_table

    if found.out:
        read_kind(found.out)
    run = load(found.run_folder)
    table = run.predict(found.source, level=found.level, strict=found.strict, **flags.chosen(found, found.names))
    show.noticed(run.noticed)
    if found.out:
        write_table(table, found.out)
        print(f"{show.counted(len(table), 'prediction')} written to {found.out}")
    else:
        show.predictions(table)
    return 0
