"""Texts with classes: the default fit beside TF-IDF of words and pairs of words with logistic regression, on the same test rows.

    python -m bench.texts FOLDER [--only trec,r8] [--start CHECKPOINT --method head]

FOLDER holds NAME.train.csv and NAME.test.csv with the columns text and label. Printed are accuracy and log loss of both, their
paired differences with 95 % intervals, and CPU seconds. The peer has scikit-learn's defaults with words and pairs of words.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import wonderland
from wonderland.tasks.leaderboard import class_scores
from wonderland.trust.paired import paired_difference


def peer(train: pd.DataFrame, test: pd.DataFrame) -> tuple[np.ndarray, list[str]]:
    """Log-probabilities of TF-IDF(1, 2) and logistic regression (n, c), and the classes."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(TfidfVectorizer(ngram_range=(1, 2)), LogisticRegression(max_iter=1000))
    model.fit(train["text"], train["label"])
    return model.predict_log_proba(test["text"]), list(model.classes_)


def ours(train: Path, test: Path, **options: Any) -> tuple[np.ndarray, list[str], float]:
    """Log-probabilities of a run (n, c), the classes, and the CPU seconds of fitting and predicting."""
    began = time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        run = wonderland.fit(train, test=test, target="label", kind="text", out=Path(folder) / "run", **options)
        spent = time.process_time() - began
        table = run.predict(test)
        assert run.classes is not None
        return np.log(np.maximum(table[[f"p({name})" for name in run.classes]].to_numpy(), 1e-15)), run.classes, spent


def compare(name: str, folder: Path, options: dict[str, Any]) -> str:
    """One line of the table."""
    paths = [folder / f"{name}.{part}.csv" for part in ("train", "test")]
    train, test = (pd.read_csv(path, dtype=str, keep_default_na=False) for path in paths)
    mine, classes, spent = ours(*paths, **options)
    theirs, other = peer(train, test)
    code = {label: i for i, label in enumerate(classes)}
    y = np.array([code[label] for label in test["label"]])
    theirs = theirs[:, [other.index(label) for label in classes]]
    scores = [class_scores(values, y) for values in (mine, theirs)]
    cells = [name, str(len(train)), str(len(test))]
    for key, size in (("accuracy", 100), ("log_loss", 1)):
        gap = paired_difference(scores[0][key], scores[1][key])
        cells.append(f"{size * scores[0][key].mean():.4g} / {size * scores[1][key].mean():.4g}")
        cells.append(f"{size * gap.value:+.3g} [{size * gap.low:+.3g}, {size * gap.high:+.3g}]")
    return " | ".join([*cells, f"{spent:.0f} s"])


def main() -> None:
    """Compare on every set of the folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", help="names of sets, with commas between them")
    parser.add_argument("--start", help="a checkpoint to begin with")
    parser.add_argument("--method", help="how it is tuned")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    options = {"seed": args.seed} | {name: vars(args)[name] for name in ("start", "method") if vars(args)[name]}
    names = (
        args.only.split(",")
        if args.only
        else sorted(path.name[: -len(".train.csv")] for path in args.folder.glob("*.train.csv"))
    )
    print("set | train | test | accuracy, ours / TF-IDF | difference | log loss, ours / TF-IDF | difference | CPU")
    for name in names:
        print(compare(name, args.folder, options), flush=True)


if __name__ == "__main__":
    main()
