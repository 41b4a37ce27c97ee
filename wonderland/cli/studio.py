"""studio: a local page that lists and compares runs, follows them and tries their models."""

import argparse


def options(verb: argparse.ArgumentParser) -> None:
    """Flags of studio."""
    verb.add_argument(
        "folder", metavar="RUNS", nargs="?", default="runs", help="the folder with your runs (default runs)"
    )
    verb.add_argument("--host", default="127.0.0.1", help="loopback address to listen on (default 127.0.0.1)")
    verb.add_argument("--port", type=int, default=8765, help="port (default 8765; 0 takes a free one)")


def run(args: argparse.Namespace) -> int:
    """Show the page until Ctrl-C or SIGTERM."""
    from wonderland.core import WonderlandError

    if not 0 <= args.port < 65536:
        raise WonderlandError(f"--port is a number from 0 to 65535, not {args.port}.")
    from wonderland.cli import show
    from wonderland.studio.serve import studio

    studio(args.folder, host=args.host, port=args.port, say=lambda text: show.say(text, error=True))
    return 0
