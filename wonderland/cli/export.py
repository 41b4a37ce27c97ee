"""export: write a run as one file for other programs (ONNX), run it there, and compare it with predict."""

import argparse


def options(verb: argparse.ArgumentParser) -> None:
    """Flags of export."""
    verb.add_argument("run_folder", metavar="RUN", help="a run folder")
    verb.add_argument("--to", default="onnx", metavar="FORMAT", help="onnx, torch or huggingface (default onnx)")
    verb.add_argument(
        "-o", "--out", metavar="PATH", help="the file or folder to write (default: inside the run folder)"
    )
    verb.add_argument("--level", type=float, help="level of sets and intervals (default: the run's)")
    verb.add_argument(
        "--quantize", metavar="TYPE", help="int8: weights in bytes; what the answers lose by it is measured and shown"
    )


def run(args: argparse.Namespace) -> int:
    """Export, and show the largest difference from predict."""
    from wonderland.core.precheck import precheck

    precheck(args.run_folder)
    from wonderland.cli import show
    from wonderland.ship import export, load

    exported = export(load(args.run_folder), args.to, args.out, level=args.level, quantize=args.quantize)
    for path in exported.files:
        show.say(f"Written: {path}")
    show.say(f"Largest difference from predict: {exported.difference:.1e}, on {exported.compared}.")
    for note in exported.notes:
        show.say(note)
    return 0
