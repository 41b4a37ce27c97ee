"""Kinds of data: one folder and one line each."""

from wonderland.kinds.corpus.kind import CorpusKind
from wonderland.kinds.image.kind import ImageKind
from wonderland.kinds.kind import Claim, Kind
from wonderland.kinds.open import open
from wonderland.kinds.pairs.kind import PairsKind
from wonderland.kinds.table.kind import TableKind
from wonderland.kinds.text.kind import TextKind

KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        TableKind(),
        ImageKind(),
        TextKind(),
        CorpusKind(),
        PairsKind(),
    )
}

__all__ = ["KINDS", "Claim", "Kind", "open"]
