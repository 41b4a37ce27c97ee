"""predict: apply a run to new data and write classes, probabilities, sets or intervals."""

import argparse
import os

from wonderland.cli import flags
from wonderland.core.errors import WonderlandError
from wonderland.kinds import NAMES, predict_options_of
from wonderland.kinds.options import FileOptions


def options(verb: argparse.ArgumentParser) -> None:
    """Flags of predict."""
    verb.add_argument("run_folder", metavar="RUN", help="a run folder")
    verb.add_argument(
        "source", metavar="DATA", nargs="?", help="new rows or images (default: what the run keeps, such as its graph)"
    )
    verb.add_argument(
        "-o", "--out", metavar="FILE", help="a .csv, .parquet or .jsonl file (default: the first rows are shown)"
    )
    verb.add_argument(
        "--label-shift",
        metavar="METHOD",
        help="correct probabilities for other shares of classes, estimated from the new rows: em or black-box",
    )
    verb.add_argument("--level", type=float, help="level of sets and intervals (default: the run's)")
    verb.add_argument(
        "--safe-csv", action="store_true", help="mark texts of the CSV file that a spreadsheet would run as formulas"
    )
    verb.add_argument(
        "--id", metavar="COLUMN", help="a column of the new data to put first, such as a number of an order"
    )
    verb.add_argument("--strict", action="store_true", help="stop at cells that would have to be repaired")
    owners = [owner for name in NAMES if (owner := predict_options_of(name)) is not None]
    names = flags.add(verb.add_argument_group("how a table file is written"), [FileOptions], skip=["strict"])
    verb.set_defaults(names=names + flags.add(verb.add_argument_group("options of kinds of data"), owners, skip=names))


def run(args: argparse.Namespace) -> int:
    """Predict, and show what had to be repaired in the new data."""
    from wonderland.core.precheck import precheck

    precheck(args.run_folder)  # refuses a hostile folder before torch is loaded
    from wonderland.cli import show
    from wonderland.ship import load, table_format, write_table

    if args.safe_csv and not (args.out and table_format(args.out) == "csv"):
        raise WonderlandError("--safe-csv is for CSV files: name one with -o FILE.csv.")
    if args.out:
        table_format(args.out)
        if args.source and os.path.exists(args.source) and os.path.realpath(args.out) == os.path.realpath(args.source):
            raise WonderlandError(f"{args.out} is the data to predict: write the predictions to another file.")
    run = load(args.run_folder)
    table = run.predict(
        args.source,
        level=args.level,
        strict=args.strict,
        id=args.id,
        label_shift=args.label_shift,
        **flags.chosen(args, args.names),
    )
    show.print_findings(run.noticed)
    if args.out:
        write_table(table, args.out, safe=args.safe_csv)
        show.say(f"{show.counted(len(table), 'prediction')} written to {args.out}")
    else:
        show.predictions(table)
    return 0
