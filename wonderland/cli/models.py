"""models: list the models that fit can be asked for, with a line and a parameter count each."""

import argparse


def options(verb: argparse.ArgumentParser) -> None:
    """Flags of models."""
    from wonderland.kinds import NAMES

    verb.add_argument("--kind", metavar="KIND", help=f"only those for this kind of data: {', '.join(NAMES)}")


def run(given: argparse.Namespace) -> int:
    """Show a table of models."""
    from wonderland.cli import show
    from wonderland.core import WonderlandError, nearest
    from wonderland.kinds import KINDS
    from wonderland.road.catalogue import catalogue

    if given.kind is not None and given.kind not in KINDS:
        raise WonderlandError(
            f"There is no kind {given.kind!r}.{nearest(given.kind, KINDS)} Known are {', '.join(KINDS)}."
        )
    rows = catalogue(given.kind)
    show.table(f"{show.counted(len(rows), 'model')} for --model", rows)
    show.console.print(
        'Arguments go in brackets: wonderland fit corpus.txt --model "Decoder(dim=64, mixer=Mamba())"', markup=False
    )
    return 0
