"""models: list the models for fit --model, with a description and a parameter count each."""

import argparse


def options(verb: argparse.ArgumentParser) -> None:
    """Flags of models."""
    from wonderland.kinds import NAMES

    verb.add_argument("--kind", metavar="KIND", help=f"only those for this kind of data: {', '.join(NAMES)}")


def run(args: argparse.Namespace) -> int:
    """Show a table of models."""
    from wonderland.cli import show
    from wonderland.core import WonderlandError, nearest
    from wonderland.kinds import KINDS
    from wonderland.road.catalogue import catalogue

    if args.kind is not None and args.kind not in KINDS:
        raise WonderlandError(
            f"There is no kind {args.kind!r}.{nearest(args.kind, KINDS)} Known are {', '.join(KINDS)}."
        )
    rows = catalogue(args.kind)
    show.table(f"{show.counted(len(rows), 'model')} for --model", rows)
    show.console.print(
        'Arguments go in brackets: wonderland fit corpus.txt --model "Decoder(dim=64, mixer=Mamba())"', markup=False
    )
    return 0
