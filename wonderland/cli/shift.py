"""shift: test whether new data still look like those a run was calibrated on."""

import argparse
import json

from wonderland.core.errors import WonderlandError


def options(verb: argparse.ArgumentParser) -> None:
    """Flags of shift."""
    verb.add_argument("run_folder", metavar="RUN", help="a run folder")
    verb.add_argument("source", metavar="DATA", help="new rows, images or texts; targets are not needed")
    verb.add_argument(
        "--level", type=float, default=0.05, help="share of false alarms where nothing changed (default 0.05)"
    )
    verb.add_argument("-o", "--out", metavar="FILE", help="write the result as a page (.html)")
    verb.add_argument("--json", action="store_true", help="print everything as JSON")


def run(args: argparse.Namespace) -> int:
    """Test and say what changed; the exit code is 1 where a shift was found, else 0."""
    from wonderland.core.precheck import precheck

    if args.out and not args.out.lower().endswith((".html", ".htm")):
        raise WonderlandError(f"The page is written as .html, and {args.out!r} ends otherwise.")
    precheck(args.run_folder)  # refuses a hostile folder before torch is loaded
    from wonderland.cli import show
    from wonderland.core import write_text
    from wonderland.ship import load
    from wonderland.understand.shift import shift_page

    run = load(args.run_folder)
    result = run.shift(args.source, level=args.level)
    facts = result.to_json() | {"run": args.run_folder, "data": args.source}
    if args.out:
        write_text(args.out, shift_page(facts))
    if args.json:
        print(json.dumps(facts, indent=2))
    else:
        show.shift(result)
        if args.out:
            show.say(f"Page: {args.out}")
    return 1 if result.shifted else 0
