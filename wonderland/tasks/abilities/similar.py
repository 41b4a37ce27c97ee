"""Items that are alike to a model."""

from typing import Any

import pandas as pd
from torch.nn.functional import normalize

from wonderland.core import WonderlandError, nearest


class Similar:
    """`run.ability("similar")("Toy Story")`: the items whose vectors point the same way."""

    def __init__(self, run: Any):
        self.run = run

    def __call__(self, item: str, *, top: int = 10) -> pd.DataFrame:
        """The nearest items by the cosine of their vectors."""
        names, vectors = list(self.run.encoder.item_names), self.run.model.item_vectors()
        if vectors is None:
            raise WonderlandError(f"{type(self.run.model).__name__} has no vectors of items to compare.")
        if str(item) not in names:
            raise WonderlandError(f"There is no item {str(item)[:80]!r}.{nearest(str(item), names[:10_000])}")
        place = names.index(str(item))
        unit = normalize(vectors[1:], dim=-1)
        cosine = unit @ unit[place]
        cosine[place] = -2
        how, near = cosine.topk(min(top, len(names) - 1))
        return pd.DataFrame({"item": [names[i] for i in near.tolist()], "cosine": how.tolist()})
