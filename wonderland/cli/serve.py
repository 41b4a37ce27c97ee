"""serve: answer requests over HTTP with one or more runs."""

import argparse


def options(verb: argparse.ArgumentParser) -> None:
    """Flags of serve."""
    verb.add_argument("run_folders", metavar="RUN", nargs="+", help="run folders")
    verb.add_argument("--host", default="127.0.0.1", help="address to listen on (default 127.0.0.1: this machine only)")
    verb.add_argument("--port", type=int, default=8000, help="port (default 8000; 0 takes a free one)")
    verb.add_argument("--key-file", metavar="FILE", help="a file with a key a line; requests must bring one of them")
    verb.add_argument(
        "--allow-host",
        metavar="NAME",
        action="append",
        default=[],
        help="answer to this name in Host too; may be repeated",
    )
    verb.add_argument("--workers", type=int, default=1, metavar="N", help="processes, each with the runs (default 1)")
    verb.add_argument("--max-body", type=float, default=16, metavar="MIB", help="largest request in MiB (default 16)")
    verb.add_argument(
        "--rate", type=float, default=0, metavar="N", help="requests a second that one address may send (default: any)"
    )
    verb.add_argument("--timeout", type=float, default=60, metavar="S", help="seconds until an answer (default 60)")


def run(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C or SIGTERM."""
    from wonderland.core import MIB, WonderlandError
    from wonderland.core.precheck import precheck

    for name, value, most in (("--max-body", args.max_body, 1024), ("--timeout", args.timeout, 3600)):
        if not 0 < value <= most:
            raise WonderlandError(f"{name} is a number above 0 and at most {most:,}, not {value:g}.")
    if not 0 <= args.rate <= 1e6:
        raise WonderlandError(f"--rate is a number from 0 to 1,000,000, not {args.rate:g}.")
    if not 0 <= args.port < 65536:
        raise WonderlandError(f"--port is a number from 0 to 65535, not {args.port}.")
    for folder in args.run_folders:
        precheck(folder)
    from wonderland.cli import show
    from wonderland.ship.serving.limits import Limits
    from wonderland.ship.serving.serve import serve

    body = int(args.max_body * MIB)
    limits = Limits(body=body, memory=max(16 * body, 256 * MIB), answer=args.timeout, rate=args.rate)
    return serve(
        args.run_folders, host=args.host, port=args.port, key_file=args.key_file, allow_hosts=args.allow_host,
        workers=args.workers, limits=limits, say=lambda text: show.say(text, error=True),
    )  # fmt: skip
