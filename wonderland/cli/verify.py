"""verify: check with a public key who signed a run, and that no file was added, removed or changed since."""

import argparse


def options(verb: argparse.ArgumentParser) -> None:
    """Flags of verify."""
    verb.add_argument("run_folder", metavar="RUN", help="a run folder")
    verb.add_argument("--key", metavar="FILE", required=True, help="the public key of the signer, a .pub file")


def run(args: argparse.Namespace) -> int:
    """Verify, and say what the signature covers."""
    from wonderland.cli import show
    from wonderland.ship.signing import verify

    files = verify(args.run_folder, args.key)
    show.say(f"The signature is right: {show.counted(len(files), 'file')} of {args.run_folder}, unchanged since.")
    return 0
