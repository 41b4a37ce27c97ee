"""cost: predict parameters, operations, time and memory of a training on this machine, before it is begun."""

import argparse
from typing import Any

from wonderland.cli import flags

MOST_LAYERS = 20


def options(verb: argparse.ArgumentParser) -> None:
    """Flags of cost, and those of fit for a source of data."""
    from wonderland.kinds import NAMES, options_of
    from wonderland.road.training import Training

    verb.add_argument("what", metavar="MODEL|RUN|DATA", help='"ResNet(classes=10)", a run folder, or data as in fit')
    verb.add_argument(
        "--precision", metavar="NAMES", help="compare float32, bfloat16, int8: several with commas, or all"
    )
    verb.add_argument(
        "--shapes", nargs="*", metavar="SIZES", default=[],
        help="inputs of a model: 32,3,64,64; 32,128:5000 for integers below 5000",
    )  # fmt: skip
    verb.add_argument("--layers", type=int, default=MOST_LAYERS, help=f"most layers to show (default {MOST_LAYERS})")
    verb.add_argument("--json", metavar="FILE", help="also write all numbers as JSON")
    verb.add_argument("--kind", help=f"kind of data (default: inferred): {', '.join(NAMES)}", metavar="KIND")
    skip = ("precision",)
    names = flags.add(verb.add_argument_group("options of the data, as in fit"), map(options_of, NAMES), skip=skip)
    names += flags.add(verb.add_argument_group("training, as in fit"), [Training], skip=[*names, *skip])
    verb.set_defaults(names=names)


def run(args: argparse.Namespace) -> int:
    """Predict, and show a table of layers, the totals, and a comparison of precisions."""
    from wonderland.cli import show
    from wonderland.cli.trace import _parse_shape
    from wonderland.core import WonderlandError, write_json
    from wonderland.road.costing import cost_of, limits
    from wonderland.understand.format import duration, size
    from wonderland.understand.precisions import chosen

    asked: dict[str, Any] = flags.chosen(args, args.names)
    names = tuple(chosen(args.precision)) if args.precision else ()
    if args.layers < 0:
        raise WonderlandError(f"--layers is a number from 0, not {args.layers}.")
    if args.kind is not None:
        asked["kind"] = args.kind
    shapes = [_parse_shape(text) for text in args.shapes]
    sheet = cost_of(args.what, asked.pop("target", None), precision=names, shapes=shapes, **asked)
    heaviest = sorted(sheet.bounds, key=lambda bound: -bound.seconds)[: args.layers]
    kinds = {layer.name: layer for layer in sheet.cost.by_layer}
    rows = [
        {
            "layer": bound.name, "kind": kinds[bound.name].kind, "parameters": kinds[bound.name].parameters,
            "FLOPs a row": kinds[bound.name].flops, "FLOPs a byte": float(f"{bound.intensity:.3g}"),
            "at least, a step": duration(3 * bound.seconds), "limited by": bound.limit,
        }
        for bound in heaviest
    ]  # fmt: skip
    if rows:
        more = len(sheet.bounds) - len(rows)
        show.table(f"{sheet.name}: {sheet.about}" + (f" ({more} lighter layers left out)" if more > 0 else ""), rows)
    machine, step = sheet.machine, sheet.step
    show.say(
        f"Machine   {machine.flops / 1e9:.3g} GFLOP/s, {machine.bandwidth / 1e9:.3g} GB/s, {machine.latency * 1e6:.2g} us a call, {show.counted(sheet.threads, 'thread')}"
    )
    share = ", ".join(f"{name} {part:.0%}" for name, part in limits(sheet).items())
    show.say(
        f"Model     {sheet.cost.parameters:,} parameters, {sheet.cost.flops:,} FLOPs forward a row; limited by {share}"
    )
    tried = ", ".join(map(str, step.tried))
    show.say(
        f"Step      {duration(step.seconds)} for {step.rows:,} rows (from steps of {tried}); at least {duration(sheet.bound_seconds)} under the roofline"
    )
    show.say(f"Memory    {size(int(step.peak_bytes))} at the peak of training, this process included")
    if sheet.training_seconds is not None:
        show.say(
            f"Training  {duration(sheet.training_seconds)}: {sheet.steps:,} steps, {duration(sheet.batch_seconds)} for each batch, "
            f"{show.counted(sheet.evaluations, 'evaluation')} of {duration(sheet.evaluation_seconds)}"
        )
    if sheet.precisions:
        show.table("Precisions, forward", [
            {"precision": row.name, "weights": size(row.weight_bytes), "time": duration(row.seconds), "relative error": float(f"{row.error:.2g}"), "": row.note}
            for row in sheet.precisions
        ])  # fmt: skip
    if args.json:
        write_json(args.json, sheet.to_json())
    return 0
