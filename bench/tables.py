"""The table recipe beside scikit-learn's boosting, networks and linear models, on the same splits, untuned all of them.

    python -m bench.tables                    every set, five folds; results are kept, so it can be cut and continued
    python -m bench.tables iris wine --fresh  some sets, ours fitted anew
    python -m bench.tables --show             only the table of what has been measured

Accuracy in per cent for classes, RMSE for numbers. Peers run with the library's defaults; inputs of networks and linear
models are standardised, one-hot and imputed for them. Ours gets the training rows and nothing else.
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
from bench.sources import CACHE, FOLDS, NAMES, Race, races
from wonderland.core import write_json

METHODS = ("wonderland", "boosting", "network", "linear")
WORDS = make_column_selector(dtype_include=[object, "category", "string"])
NUMBERS = make_column_selector(dtype_include="number")


def prepared(model):
    """A network or linear model behind the preparation it needs."""
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    words = make_pipeline(SimpleImputer(strategy="constant", fill_value="?"), OneHotEncoder(handle_unknown="ignore"))
    return make_pipeline(make_column_transformer((numbers, NUMBERS), (words, WORDS), sparse_threshold=0), model)


def peer(method: str, race: Race):
    """A rival with its defaults."""
    if method == "boosting":
        kind = HistGradientBoostingRegressor if race.regression else HistGradientBoostingClassifier
        return kind(random_state=race.fold, categorical_features="from_dtype")
    if method == "network":
        if race.regression:
            return prepared(
                TransformedTargetRegressor(MLPRegressor(random_state=race.fold), transformer=StandardScaler())
            )
        return prepared(MLPClassifier(random_state=race.fold))
    return prepared(Ridge() if race.regression else LogisticRegression())


def measure(method: str, race: Race) -> dict[str, float]:
    """Score and seconds of one method on one split."""
    began = time.perf_counter()
    truth = race.test["target"].to_numpy()
    if method == "wonderland":
        folder = tempfile.mkdtemp(prefix="wonderland-bench-")
        run = wonderland.fit(race.train, "target", out=folder, seed=race.fold, test=race.test)
        predicted = run.predict(race.test.drop(columns="target"))["prediction"].to_numpy()
        shutil.rmtree(folder)
    else:
        train, test = (frame.drop(columns="target").copy() for frame in (race.train, race.test))
        for column in train.columns:
            if train[column].dtype.kind not in "if":
                levels = sorted(train[column].dropna().astype(str).unique())
                for frame in (train, test):
                    known = frame[column].isin(levels) if method == "boosting" else frame[column].notna()
                    words = frame[column].astype(object).where(known, None)
                    frame[column] = pd.Categorical(words, categories=levels) if method == "boosting" else words
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # rivals that did not converge in their default time stay as they are
            predicted = peer(method, race).fit(train, race.train["target"]).predict(test)
    if race.regression:
        score = float(np.sqrt(np.mean((predicted.astype(float) - truth) ** 2)))
    else:
        score = float(100 * np.mean(predicted == truth))
    return {"score": score, "seconds": time.perf_counter() - began}


def table(found: dict) -> str:
    """Means over folds, ranks and gaps, as text."""
    lines = [f"{'set':14}" + "".join(f"{method:>22}" for method in METHODS) + f"{'behind the best':>18}"]
    ranks, worst = [], []
    for name in NAMES:
        rows = found.get(name, {})
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
    """Race, keep results, show the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=NAMES)
    parser.add_argument("--folds", type=int, default=FOLDS)
    parser.add_argument("--fresh", action="store_true", help="fit ours again")
    parser.add_argument("--show", action="store_true", help="only show what is there")
    parser.add_argument("--results", default=str(CACHE / "tables.json"))
    asked = parser.parse_args()
    CACHE.mkdir(exist_ok=True)
    try:
        with open(asked.results) as file:
            found = json.load(file)
    except FileNotFoundError:
        found = {}
    for name in [] if asked.show else asked.names:
        rows = found.setdefault(name, {})
        if asked.fresh:
            rows.pop("wonderland", None)
        for race in races(name, asked.folds):
            for method in METHODS:
                kept = rows.setdefault(method, {})
                if str(race.fold) not in kept:
                    kept[str(race.fold)] = measure(method, race)
                    write_json(asked.results, found)
        shown = {
            method: round(float(np.mean([row["score"] for row in rows[method].values()])), 4) for method in METHODS
        }
        print(name, shown, flush=True)
    print(table(found))


if __name__ == "__main__":
    main()
