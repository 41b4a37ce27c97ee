"""Every recommender on ratings such as MovieLens-100k: ranking by time, beside what is chosen most and the neighbours of items.

The data are a table with columns for users, items and times (user_id, movie_id, rating, timestamp).
"""

import sys
import tempfile
from pathlib import Path

import wonderland
from examples.lab import DATA, Claim, above, run, table
from examples.lab.files import find

MODELS = ("MatrixFactorisation", "SequenceRecommender", "NeuMF", "AutoRec", "FactorisationMachine", "DeepFM", "Caser")
SIMPLE = {"the items chosen most": "popular", "neighbours of items": "neighbours"}


def lab(data: str | None = None, steps: int | str | None = None) -> tuple[list[Claim], str, dict[str, str]]:
    source = find("ml-100k.csv", data)
    options = {} if steps is None else {"steps": int(steps)}
    rows, best, measured = [], 0.0, {}
    with tempfile.TemporaryDirectory() as folder:
        for name in MODELS:
            fitted = wonderland.fit(source, kind="ratings", model=name, out=Path(folder) / name, **options)
            measured = fitted.metrics
            best = max(best, measured["ndcg"])
            rows.append((name, f"{measured['ndcg']:.4f}", f"{measured['hit_rate']:.4f}"))
    simple = {name: measured[f"{key}_ndcg"] for name, key in SIMPLE.items()}
    rows += [(name, f"{simple[name]:.4f}", f"{measured[f'{key}_hit_rate']:.4f}") for name, key in SIMPLE.items()]
    claims = [above(f"NDCG@10 of the best model, above that of {name}", best, value) for name, value in simple.items()]
    return claims, table(("model", "NDCG@10", "hit rate"), rows), {}


def main(given: list[str] | None = None) -> int:
    """0 when every stated number is reached, 1 when one is missed, 2 without data."""
    more = DATA | {"--steps": {"default": None, "help": "steps of each model (default: those of its recipe)"}}
    return run("movielens", __doc__.splitlines()[0], lab, given, more)


if __name__ == "__main__":
    sys.exit(main())
