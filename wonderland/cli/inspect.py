"""inspect: show what data holds, column by column, and what fit would repair or leave out."""

import argparse

from wonderland.cli import flags


def options(verb: argparse.ArgumentParser) -> None:
    """Flags of inspect."""
    from wonderland.kinds import NAMES, options_of

    verb.add_argument("source", help="a file, a folder of class folders, or a bundled set")
    verb.add_argument("--kind", help=f"kind of data (default: inferred): {', '.join(NAMES)}", metavar="KIND")
    verb.set_defaults(names=flags.add(verb.add_argument_group("options of the data"), map(options_of, NAMES)))


def run(args: argparse.Namespace) -> int:
    """Open the data and show it."""
    from wonderland import kinds
    from wonderland.cli import show

    show.dataset(kinds.open(args.source, kind=args.kind, **flags.chosen(args, args.names)))
    return 0
