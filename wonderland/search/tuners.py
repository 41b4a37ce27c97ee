"""The tuners by name, as the command line and a study's journal name them."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from wonderland.core import WonderlandError, nearest
from wonderland.search.bayes import BayesianOptimisation
from wonderland.search.halving import ASHA, SuccessiveHalving
from wonderland.search.hyperband import BOHB, Hyperband
from wonderland.search.tuner import GridSearch, RandomSearch, Tuner

TUNERS: dict[str, type[Tuner]] = {
    "random": RandomSearch,
    "grid": GridSearch,
    "halving": SuccessiveHalving,
    "asha": ASHA,
    "hyperband": Hyperband,
    "bo": BayesianOptimisation,
    "bohb": BOHB,
}


def make_tuner(name: str, options: Mapping[str, Any] | None = None) -> Tuner:
    """A tuner by name, with options of its own.

    >>> make_tuner("asha", {"eta": 2})
    ASHA(eta=2, rungs=3, spend=0.3333333333333333)
    """
    if name not in TUNERS:
        raise WonderlandError(f"There is no tuner {name!r}.{nearest(str(name), TUNERS)} Known are {', '.join(TUNERS)}.")
    owner = TUNERS[name]
    known = owner.__dataclass_fields__  # pyright: ignore[reportAttributeAccessIssue]
    for key in options or {}:
        if key not in known:
            raise WonderlandError(f"The tuner {name} has no option {key!r}.{nearest(key, known)}")
    return owner(**(options or {}))


def tuner_json(tuner: Tuner) -> dict[str, Any]:
    """A tuner as plain JSON, for `make_tuner`."""
    name = next(name for name, owner in TUNERS.items() if type(tuner) is owner)
    return {"name": name, "options": asdict(tuner)}  # pyright: ignore[reportArgumentType]
