"""scaling: train models of several sizes, and fit laws of how the loss falls with model, data and computation."""

import argparse
from typing import Any

from wonderland.cli import flags

OWN = ("budget",)


def options(verb: argparse.ArgumentParser) -> None:
    """Flags of scaling, and those of fit, which all trainings share."""
    from wonderland.kinds import NAMES, options_of
    from wonderland.road.training import Training

    verb.add_argument("source", help="a file, a folder, or a bundled set such as digits")
    verb.add_argument("--sizes", required=True, metavar="LIST", help="values of the setting, such as 16,32,64,128")
    verb.add_argument("--setting", default="model.dim", help="what has these sizes (default model.dim)", metavar="PATH")
    verb.add_argument(
        "--shares", default="0.25,0.5,1", metavar="LIST", help="shares of the training rows (default 0.25,0.5,1)"
    )
    verb.add_argument(
        "--operations", type=float, metavar="N", help="say the best sizes for so many operations, such as 1e15"
    )
    verb.add_argument(
        "--out",
        metavar="FOLDER",
        help="folder of trainings and report (default: scalings/NAME); the same command goes on there",
    )
    verb.add_argument("--kind", help=f"kind of data (default: inferred): {', '.join(NAMES)}", metavar="KIND")
    names = flags.add(verb.add_argument_group("options of the data, as in fit"), map(options_of, NAMES), skip=OWN)
    names += flags.add(verb.add_argument_group("training, as in fit"), [Training], skip=[*names, *OWN])
    verb.set_defaults(names=names)


def run(args: argparse.Namespace) -> int:
    """Train, with a line for each point, then say the laws."""
    from wonderland.cli import show
    from wonderland.core import WonderlandError
    from wonderland.road.scaling import REPORT, scaling, sentences
    from wonderland.understand.format import compact

    asked: dict[str, Any] = flags.chosen(args, args.names)
    if args.kind is not None:
        asked["kind"] = args.kind
    if args.operations is not None and not 0 < args.operations < 1e40:
        raise WonderlandError(f"--operations is a number above 0, such as 1e15, not {args.operations}.")

    def show_point(point: Any) -> None:
        show.say(
            f"{args.setting} {point.setting}: {compact(point.parameters)} parameters, {point.rows:,} rows: loss {point.loss:.5g}"
        )

    result = scaling(
        args.source, asked.pop("target", None), sizes=_numbers(args.sizes, "--sizes"), setting=args.setting,
        shares=_numbers(args.shares, "--shares"), out=args.out, operations=args.operations, on_point=show_point, **asked,
    )  # fmt: skip
    for text in sentences(result, args.operations):
        show.say(text)
    assert result.folder is not None
    show.say(f"The report is {result.folder / REPORT}")
    return 0


def _numbers(text: str, name: str) -> list[int | float]:
    """Numbers with commas between them."""
    from wonderland.core import WonderlandError

    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if not values or not all(0 < value < 1e12 for value in values) or len(values) > 100:
        raise WonderlandError(f"{name} are numbers above 0 with commas between them, such as 16,32,64, not {text!r}.")
    return [int(value) if value == int(value) else value for value in values]
