"""merge: one model from several fine-tuned ones, by averages, task vectors or TIES."""

import argparse
from typing import Any


def options(verb: argparse.ArgumentParser) -> None:
    """Flags of merge."""
    verb.add_argument(
        "sources",
        nargs="+",
        metavar="RUN|CHECKPOINT",
        help="run folders of one model, or folders of the transformers library",
    )
    verb.add_argument("-o", "--out", metavar="DIR", required=True, help="the folder of the merged model")
    verb.add_argument(
        "--method",
        default="average",
        metavar="METHOD",
        help="average of weights, task (the sum of changes from the base), or ties (default average)",
    )
    verb.add_argument("--base", metavar="RUN|CHECKPOINT", help="the model that all began from, for task and ties")
    verb.add_argument(
        "--shares", metavar="A,B,...", help="how much each model counts, for average and ties (default equally)"
    )
    verb.add_argument("--scale", type=float, help="what the changes are multiplied with, for task and ties (default 1)")
    verb.add_argument("--density", type=float, help="the share of each change that ties keeps (default 0.2)")
    verb.add_argument("--quiet", action="store_true", help="print errors only")


def run(args: argparse.Namespace) -> int:
    """Merge, and measure a merged run on the rows that none of its parts learned."""
    from wonderland.checkpoints.config_file import refuse_unknown_checkpoint

    for source in filter(None, (*args.sources, args.base)):
        refuse_unknown_checkpoint(source)  # before torch is loaded
    from wonderland.cli import show
    from wonderland.core import WonderlandError
    from wonderland.road import fit
    from wonderland.road.merging import is_run, merge

    asked: dict[str, Any] = {name: vars(args)[name] for name in ("scale", "density") if vars(args)[name] is not None}
    if args.shares is not None:
        try:
            asked["shares"] = [float(share) for share in args.shares.split(",")]
        except ValueError:
            raise WonderlandError(f"--shares is a list of numbers such as 0.7,0.3, not {args.shares[:60]!r}.") from None
    out = merge(args.sources, args.out, method=args.method, base=args.base, **asked)
    if not is_run(out):
        if not args.quiet:
            show.say(f"The merged checkpoint is in {out}. Use it: wonderland fit DATA --from {out}")
        return 0
    shown = None if args.quiet else show.after_training
    result = fit(resume=out, progress=False, on_measured=shown)
    if not args.quiet:
        show.after_report(result)
    return 0
