"""The table recipe compared with scikit-learn's boosting, networks and linear models, on the same splits, all untuned.

    python -m bench.tables                    every set, five folds; results are saved, so it can be interrupted
    python -m bench.tables iris wine --fresh  some sets, with ours fitted again
    python -m bench.tables --show             only the table of saved results

Accuracy in per cent for classes, RMSE for numbers. Peers run with the library's defaults; for networks and linear
models, inputs are imputed, standardised and one-hot encoded. Ours gets only the training rows.
"""

import argparse
import json
import shutil
import tempfile
import time
import warnings

import numpy as np
import pandas as pd
from sklearn.compose import TransformedTargetRegressor, make_column_selector, make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import wonderland
from bench.sources import CACHE, FOLDS, NAMES, Split, splits
from wonderland.core import write_json

METHODS = ("wonderland", "boosting", "network", "linear")
CATEGORIES = make_column_selector(dtype_include=[object, "category", "string"])
NUMBERS = make_column_selector(dtype_include="number")


def prepared(model):
    """A network or linear model with the preprocessing it needs."""
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    categories = make_pipeline(
        SimpleImputer(strategy="constant", fill_value="?"), OneHotEncoder(handle_unknown="ignore")
    )
    return make_pipeline(
        make_column_transformer((numbers, NUMBERS), (categories, CATEGORIES), sparse_threshold=0), model
    )


def peer(method: str, split: Split):
    """A peer with its defaults."""
    if method == "boosting":
        kind = HistGradientBoostingRegressor if split.regression else HistGradientBoostingClassifier
        return kind(random_state=split.fold, categorical_features="from_dtype")
    if method == "network":
        if split.regression:
            return prepared(
                TransformedTargetRegressor(MLPRegressor(random_state=split.fold), transformer=StandardScaler())
            )
        return prepared(MLPClassifier(random_state=split.fold))
    return prepared(Ridge() if split.regression else LogisticRegression())


def measure(method: str, split: Split) -> dict[str, float]:
    """Score and seconds of one method on one split."""
    began = time.perf_counter()
    truth = split.test["target"].to_numpy()
    if method == "wonderland":
        folder = tempfile.mkdtemp(prefix="wonderland-bench-")
        run = wonderland.fit(split.train, "target", out=folder, seed=split.fold, test=split.test)
        predicted = run.predict(split.test.drop(columns="target"))["prediction"].to_numpy()
        shutil.rmtree(folder)
    else:
        train, test = (frame.drop(columns="target").copy() for frame in (split.train, split.test))
        for column in train.columns:
            if train[column].dtype.kind not in "if":
                levels = sorted(train[column].dropna().astype(str).unique())
                for frame in (train, test):
                    known = frame[column].isin(levels) if method == "boosting" else frame[column].notna()
                    values = frame[column].astype(object).where(known, None)
                    frame[column] = pd.Categorical(values, categories=levels) if method == "boosting" else values
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore"
            )  # peers that do not converge in their default number of steps count as they are
            predicted = peer(method, split).fit(train, split.train["target"]).predict(test)
    if split.regression:
        score = float(np.sqrt(np.mean((predicted.astype(float) - truth) ** 2)))
    else:
        score = float(100 * np.mean(predicted == truth))
    return {"score": score, "seconds": time.perf_counter() - began}


def table(results: dict) -> str:
    """Means over folds, ranks and gaps, as text."""
    lines = [f"{'set':14}" + "".join(f"{method:>22}" for method in METHODS) + f"{'behind the best':>18}"]
    ranks, worst = [], []
    for name in NAMES:
        rows = results.get(name, {})
        if any(len(rows.get(method, {})) < 1 for method in METHODS):
            continue
        folds = sorted(set.intersection(*(set(rows[method]) for method in METHODS)))
        scores = {method: [rows[method][fold]["score"] for fold in folds] for method in METHODS}
        means = {method: float(np.mean(values)) for method, values in scores.items()}
        lower = name in ("diabetes", "california")
        order = np.array([means[method] if lower else -means[method] for method in METHODS])
        ranks.append([(order < mine).sum() + ((order == mine).sum() + 1) / 2 for mine in order])
        best = min(means.values()) if lower else max(means.values())
        behind = 100 * (means["wonderland"] / best - 1) if lower else best - means["wonderland"]
        worst.append((behind / (2 if lower else 1), name))
        cells = [
            f"{means[m]:.4g} ± {np.std(scores[m]):.2g} ({np.mean([rows[m][f]['seconds'] for f in folds]):.3g} s)"
            for m in METHODS
        ]
        lines.append(
            f"{name:14}" + "".join(f"{cell:>22}" for cell in cells) + f"{behind:>10.2f} {'%' if lower else 'points'}"
        )
    mean = np.mean(ranks, axis=0)
    lines.append("mean rank     " + "".join(f"{value:>22.2f}" for value in mean))
    lines.append(f"worst gap as a share of what is allowed (1 point, 2 %): {max(worst)[0]:.2f} on {max(worst)[1]}")
    return "\n".join(lines)


def main() -> None:
    """Measure, save results, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--folds", type=int, default=FOLDS)
    parser.add_argument("--fresh", action="store_true", help="fit ours again")
    parser.add_argument("--show", action="store_true", help="only print saved results")
    parser.add_argument("--results", default=str(CACHE / "tables.json"))
    options = parser.parse_args()
    CACHE.mkdir(exist_ok=True)
    try:
        with open(options.results) as file:
            results = json.load(file)
    except FileNotFoundError:
        results = {}
    for name in [] if options.show else options.names:
        rows = results.setdefault(name, {})
        if options.fresh:
            rows.pop("wonderland", None)
        for split in splits(name, options.folds):
            for method in METHODS:
                measured = rows.setdefault(method, {})
                if str(split.fold) not in measured:
                    measured[str(split.fold)] = measure(method, split)
                    write_json(options.results, results)
        scores = {
            method: round(float(np.mean([row["score"] for row in rows[method].values()])), 4) for method in METHODS
        }
        print(name, scores, flush=True)
    print(table(results))


if __name__ == "__main__":
    main()
