"""neighbours: find the texts whose vectors are nearest to that of a query."""

import argparse


def options(verb: argparse.ArgumentParser) -> None:
    """Flags of neighbours."""
    verb.add_argument("vectors", metavar="VECTORS", help="a .npy file written by wonderland embed")
    verb.add_argument("queries", metavar="QUERY", nargs="+", help="a text to search for, or #N for the text of row N")
    verb.add_argument("--top", type=int, default=10, metavar="N", help="how many neighbours are shown (default 10)")
    verb.add_argument(
        "--from",
        dest="source",
        metavar="RUN|CHECKPOINT",
        help="what computes the vector of the query (default: as recorded)",
    )


def run(args: argparse.Namespace) -> int:
    """Search, and show the nearest texts of each query."""
    from wonderland.checkpoints.config_file import refuse_unknown_checkpoint

    if args.source:
        refuse_unknown_checkpoint(args.source)  # before torch is loaded
    from wonderland.cli import show
    from wonderland.core.errors import WonderlandError
    from wonderland.ship.embedding import Embedder, read_vectors_file
    from wonderland.solvers.neighbours import Neighbours

    embedded = read_vectors_file(args.vectors)
    texts = [query for query in args.queries if not _row(query)]
    source = args.source or embedded.source
    if texts and not source:
        raise WonderlandError(f"{args.vectors} does not say what computed it: name the run or checkpoint with --from.")
    vectors = iter(Embedder(source)(texts)) if texts else iter(())
    index = Neighbours(embedded.vectors)
    for query in args.queries:
        row = _row(query)
        if row is not None and not row <= len(index):
            raise WonderlandError(f"{args.vectors} has the rows 1 to {len(index):,}, not {row:,}.")
        places, cosines = index.search(next(vectors) if row is None else embedded.vectors[row - 1], args.top)
        rows = [
            {"row": place + 1, "cosine": cosine, "text": embedded.texts[place] if embedded.texts else ""}
            for place, cosine in zip(places[0].tolist(), cosines[0].tolist(), strict=True)
        ]
        show.table(query if row is None or not embedded.texts else embedded.texts[row - 1], rows)
    return 0


def _row(query: str) -> int | None:
    """The row that a query such as #12 names."""
    number = query.removeprefix("#")
    return int(number) if query.startswith("#") and number.isdigit() and int(number) >= 1 else None
