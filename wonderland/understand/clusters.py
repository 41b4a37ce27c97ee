"""Clusters of texts by their vectors, with names: the words that tell each from the others."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from wonderland.data.text.cluster_names import cluster_names
from wonderland.solvers.kmeans import kmeans

SHOWN = 3  # texts of each cluster, those nearest to its centre


def clustered(
    vectors: ndarray, texts: Sequence[str], clusters: int, groups: Sequence[str] | None = None
) -> list[dict[str, Any]]:
    """Clusters, the largest first: words, size, texts nearest to the centre, and the most frequent of `groups` with its share."""
    clustering = kmeans(vectors, clusters)
    names = cluster_names(texts, clustering.labels)
    rows = []
    for code in range(clusters):
        members = np.flatnonzero(clustering.labels == code)
        if not len(members):
            continue
        near = members[
            np.argsort(((vectors[members] - clustering.centres[code]) ** 2).sum(1), kind="stable")[:SHOWN]
        ].tolist()
        row: dict[str, Any] = {"words": names[code], "size": len(members), "examples": [texts[i][:200] for i in near]}
        if groups is not None:
            own = [groups[i] for i in members.tolist()]
            usual = max(sorted(set(own)), key=own.count)
            row |= {"group": usual, "share": own.count(usual) / len(own)}
        rows.append(row)
    return sorted(rows, key=lambda row: -row["size"])
