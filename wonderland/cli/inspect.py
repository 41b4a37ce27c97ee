"""inspect: show what data holds, column by column, and what fit would repair or leave out."""

import argparse


def options(verb: argparse.ArgumentParser) -> None:
    """What can be said to inspect."""
    verb.add_argument("source", help="a file, a folder of class folders, or a bundled set")
    verb.add_argument("--target", metavar="COLUMN", help="the column to learn (default: inferred)")
    verb.add_argument("--task", choices=["binary", "multiclass", "regression"], help="default: inferred")
    verb.add_argument("--group", metavar="COLUMN", help="rows that share its value belong together")
    verb.add_argument("--time", metavar="COLUMN", help="when each row happened")
    verb.add_argument("--keep", metavar="COLUMN", action="append", default=[], help="keep a column; may be repeated")
    verb.add_argument(
        "--drop", metavar="COLUMN", action="append", default=[], help="leave a column out; may be repeated"
    )
    verb.add_argument(
        "--kind", choices=["table", "text", "corpus", "pairs"], help="what the data are (default: inferred)"
    )
    verb.add_argument("--column", metavar="COLUMN", help="the column or field that holds the text")
    verb.add_argument("--lines", action="store_true", help="each line of a text file is a document of its own")


def run(found: argparse.Namespace) -> int:
    """Open the data and show it."""
    from wonderland import data
    from wonderland.cli import show

    dataset = data.open(
        found.source,
        found.target,
        task=found.task,
        group=found.group,
        time=found.time,
        keep=found.keep,
        drop=found.drop,
        kind=found.kind,
        column=found.column,
        lines=found.lines,
    )
    show.dataset(dataset)
    return 0
