"""MovieLens-100k: the error of ratings over five random folds, and ranking by time beside the `implicit` package.

python -m bench.ratings ratings.csv            # columns user_id, movie_id, rating, timestamp
"""

import sys
import time

import numpy as np
import pandas as pd
import torch

from wonderland import kinds
from wonderland.models import implicit_als, rating_als


def rmse(frame: pd.DataFrame, fold: int, *, dim: int, ridge: float, seed: int = 0) -> float:
    """Matrix factorisation with biases on four fifths of the ratings, measured on the rest."""
    users, items = (torch.from_numpy(pd.factorize(frame[column])[0]) for column in ("user_id", "movie_id"))
    y = torch.from_numpy(frame["rating"].to_numpy(np.float64))
    part = np.random.default_rng(seed).permutation(len(frame)) % 5
    train, test = torch.from_numpy(part != fold), torch.from_numpy(part == fold)
    sizes = (int(users.max()) + 1, int(items.max()) + 1)
    factors = rating_als(users[train], items[train], y[train], sizes=sizes, dim=dim, ridge=ridge)
    return float((factors.predict(users[test], items[test]).clamp(1, 5) - y[test]).square().mean().sqrt())


def by_time(frame: pd.DataFrame) -> dict[str, tuple[float, float]]:
    """NDCG and hit rate at 10 for each event of the latest fifth: our ALS and that of `implicit`, users solved from what they chose before."""
    dataset = kinds.open(frame, kind="ratings")
    kind = kinds.KINDS["ratings"]
    parts = kind.split(dataset, test=0.2, seed=0)
    examples = kind.encoder(dataset, parts).examples(dataset)
    users, items = dataset.users[parts.train], dataset.items[parts.train]
    vectors = {"our ALS": implicit_als(torch.from_numpy(users), torch.from_numpy(items), dim=32)[1].numpy()}
    try:
        from implicit.als import AlternatingLeastSquares
        from implicit.bpr import BayesianPersonalizedRanking
        from scipy.sparse import csr_matrix

        matrix = csr_matrix(
            (np.ones(len(users), np.float32), (users, items)), shape=(users.max() + 1, len(dataset.item_names) + 1)
        )
        for name, model in (("implicit ALS", AlternatingLeastSquares(factors=32, regularization=0.1, alpha=10.0, iterations=15, random_state=0, num_threads=1)),
                            ("implicit BPR", BayesianPersonalizedRanking(factors=32, iterations=200, random_state=0, num_threads=1))):  # fmt: skip
            model.fit(matrix, show_progress=False)
            vectors[name] = np.asarray(model.item_factors)
    except ImportError:
        pass
    found = {}
    for name, y in vectors.items():
        gram, gains, hits = y.T @ y, [], []
        for row in parts.test:
            seen, target = examples.seen(int(row)), int(dataset.items[row])
            scores = np.zeros(len(dataset.item_names) + 1)
            if len(seen):
                own = y[seen[seen < len(y)]]
                if "BPR" in name:  # no closed form for a new user: the mean of what was chosen
                    vector = own.mean(0)
                else:
                    vector = np.linalg.solve(gram + 10 * own.T @ own + 0.1 * np.eye(y.shape[1]), 11 * own.sum(0))
                scores[: len(y)] = y @ vector
            else:
                scores = examples.popularity.astype(float)
            scores[0], scores[seen] = -np.inf, -np.inf
            rank = 1 + int((scores > scores[target]).sum())
            gains.append(1 / np.log2(1 + rank) if rank <= 10 else 0.0)
            hits.append(rank <= 10)
        found[name] = (float(np.mean(gains)), float(np.mean(hits)))
    return found


def main(path: str) -> None:
    torch.set_num_threads(1)
    frame = pd.read_csv(path)
    for name, (ndcg, hit) in by_time(frame).items():
        print(f"{name}: NDCG@10 {ndcg:.4f}, hit rate {hit:.4f}", flush=True)
    began, folds = time.process_time(), []
    for fold in range(5):
        folds.append(rmse(frame, fold, dim=20, ridge=0.15))  # chosen within the training part of fold 0
        print(f"fold {fold}: RMSE {folds[-1]:.4f}, {time.process_time() - began:.0f} CPU seconds", flush=True)
    print(f"RMSE over five folds {np.mean(folds):.4f}")


if __name__ == "__main__":
    main(sys.argv[1])
