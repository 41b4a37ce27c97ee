"""embed: compute a vector for each text by a run or a checkpoint, and write them to a file; names of their clusters."""

import argparse


def options(verb: argparse.ArgumentParser) -> None:
    """Flags of embed."""
    verb.add_argument(
        "source", metavar="RUN|CHECKPOINT", help="a run folder, or a checkpoint of the transformers library"
    )
    verb.add_argument("texts", metavar="TEXTS", help="lines of a text file, a folder of texts, a table, or JSON lines")
    verb.add_argument("-o", "--out", metavar="FILE", required=True, help="a .npy file; the texts are written beside it")
    verb.add_argument("--column", metavar="NAME", help="the column or field with the text (default: by its name)")
    verb.add_argument("--clusters", type=int, metavar="N", help="form this many groups and show their names")


def run(args: argparse.Namespace) -> int:
    """Compute, write, and show the clusters that were asked for."""
    from pathlib import Path

    from wonderland.checkpoints.config_file import refuse_unknown_checkpoint
    from wonderland.cli import show
    from wonderland.core.errors import WonderlandError
    from wonderland.core.precheck import precheck

    if not args.out.lower().endswith(".npy"):
        raise WonderlandError(f"Vectors are written as a .npy file, not {Path(args.out).suffix or args.out}.")
    if (Path(args.source) / "trust.json").exists():
        precheck(args.source)  # refuses a hostile folder before torch is loaded
    refuse_unknown_checkpoint(args.source)
    from wonderland.ship.embedding import Embedded, Embedder, texts_of, write_vectors

    texts = texts_of(args.texts, args.column)
    if args.clusters is not None and not 2 <= args.clusters <= len(texts):
        raise WonderlandError(f"{len(texts):,} texts form 2 to {len(texts):,} clusters, not {args.clusters}.")
    embedder = Embedder(args.source)
    pieces = []
    with show.byte_progress("texts", len(texts), quiet=False) as progress:
        import numpy as np

        for first in range(0, len(texts), 512):
            pieces.append(embedder(texts[first : first + 512]))
            progress(min(len(texts), first + 512))
    vectors = np.concatenate(pieces)
    write_vectors(args.out, Embedded(vectors, texts, str(embedder.folder)))
    show.say(f"{show.counted(len(texts), 'vector')} of {vectors.shape[1]} numbers written to {args.out}")
    if args.clusters is not None:
        from wonderland.understand.clusters import clustered

        rows = [
            {
                "cluster": ", ".join(row["words"]) or "(no words)",
                "texts": row["size"],
                "nearest to its centre": row["examples"][0],
            }
            for row in clustered(vectors, texts, args.clusters)
        ]
        show.table("Clusters", rows)
    show.say(f'Search: wonderland neighbours {args.out} "a query"')
    return 0
