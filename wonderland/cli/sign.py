"""sign: sign a finished run with a private key, as proof of origin."""

import argparse

from wonderland.core.errors import WonderlandError


def options(verb: argparse.ArgumentParser) -> None:
    """Flags of sign."""
    verb.add_argument("run_folder", metavar="RUN", nargs="?", help="a run folder")
    verb.add_argument("--key", metavar="FILE", help="the private key to sign with")
    verb.add_argument("--new-key", metavar="FILE", help="make a new private key FILE, and FILE.pub to give to others")


def run(args: argparse.Namespace) -> int:
    """Make a key, sign a run, or both."""
    from wonderland.cli import show
    from wonderland.ship.signing import SIGNATURE, new_key, sign

    if args.new_key and args.key:
        raise WonderlandError("Choose one of --key and --new-key.")
    key = args.key or args.new_key
    if key is None or (args.run_folder is None and not args.new_key):
        raise WonderlandError("Give a run and --key FILE to sign it, or --new-key FILE to make a key.")
    if args.new_key:
        public = new_key(args.new_key)
        show.say(f"Private key: {args.new_key} (keep it secret). Public key: {public} (give it to others).")
    if args.run_folder is not None:
        files = sign(args.run_folder, key)
        show.say(f"Signed: {show.counted(len(files), 'file')} of {args.run_folder}, in {SIGNATURE}.")
    return 0
