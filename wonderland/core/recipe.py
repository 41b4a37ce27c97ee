"""Recipe: everything a training needs to know, as specs and numbers. Nothing in it is measured again."""

from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from wonderland.core.errors import WonderlandError
from wonderland.core.spec import Spec

_NUMBER, _NONE = (int, float), type(None)
_TYPES: dict[str, tuple[type, ...]] = {
    "steps": (int,),
    "batch_size": (int,),
    "lr": _NUMBER,
    "average": (*_NUMBER, _NONE),
    "clip": (*_NUMBER, _NONE),
    "accumulate": (int,),
    "precision": (str,),
    "evaluate_every": (int,),
    "patience": (int, _NONE),
    "ensemble": (dict, _NONE),
    "workers": (int,),
}
_SPECS = ("task", "learner", "optimizer", "schedule", "augment")


@dataclass(frozen=True)
class Ensemble:
    """Networks that learn side by side in one model.

    With `folds`, members form that many groups of equal size; group k never sees fold k of the training rows and is measured
    on it. `variants` kinds of members take turns within a group.
    """

    members: int
    folds: int | None = None
    variants: int = 1

    def __post_init__(self):
        numbers = (self.members, self.variants, *([] if self.folds is None else [self.folds]))
        if not all(isinstance(number, int) and not isinstance(number, bool) and number >= 1 for number in numbers):
            raise WonderlandError("An ensemble has whole numbers of members, folds and variants, each at least 1.")
        group = self.members // (self.folds or 1)
        if (
            self.members % (self.folds or 1)
            or group % self.variants
            or (self.folds or 2) < 2
            or (self.folds or 2) > 999
        ):
            raise WonderlandError(
                f"{self.members} members cannot form {self.folds} groups of {self.variants} variants."
            )


@dataclass(frozen=True)
class Recipe:
    """How a model is made and taught.

    `model` is a spec, or the class name of a user's own module. `optimizer` and `schedule` are specs without the peak rate,
    which is `lr`. `augment` changes the inputs of each step; `average` is the decay of a moving average of the weights.
    """

    model: Spec | str
    task: Spec
    learner: Spec
    optimizer: Spec
    schedule: Spec
    steps: int
    batch_size: int
    lr: float
    average: float | None = None
    clip: float | None = 1.0
    accumulate: int = 1
    precision: str = "float32"
    evaluate_every: int = 1
    patience: int | None = None
    ensemble: Ensemble | None = None
    augment: Spec | None = None
    workers: int = 0
    extensions: int = 0

    @property
    def folds(self) -> int | None:
        """The number of folds, where members are trained in folds."""
        return None if self.ensemble is None else self.ensemble.folds

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values |= {name: None if values[name] is None else values[name].to_json() for name in _SPECS}
        values["ensemble"] = None if self.ensemble is None else asdict(self.ensemble)
        values["model"] = {"own": self.model} if isinstance(self.model, str) else self.model.to_json()
        return values

    @staticmethod
    def from_json(value: dict[str, Any]) -> "Recipe":
        """Back from `to_json`."""
        try:
            for name, types in _TYPES.items():
                if not isinstance(value[name], types) or isinstance(value[name], bool):
                    raise TypeError(name)
            if min(value[name] for name in ("steps", "batch_size", "accumulate", "evaluate_every")) < 1:
                raise TypeError("sizes")
            extensions = value.get("extensions", 0)
            if isinstance(extensions, bool) or not isinstance(extensions, int) or not 0 <= extensions <= 10:
                raise TypeError("extensions")
            own = value["model"].get("own")
            specs = {name: None if value[name] is None else Spec.from_json(value[name]) for name in _SPECS}
            if any(specs[name] is None for name in _SPECS[:-1]):
                raise TypeError("specs")
            model = own if isinstance(own, str) else Spec.from_json(value["model"])
            ensemble = None if value["ensemble"] is None else Ensemble(**value["ensemble"])
            return Recipe(**{**value, **specs, "model": model, "ensemble": ensemble})
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise WonderlandError("config.json does not hold a whole recipe: it is damaged or not ours.") from error

    def changed(self, **changes: Any) -> "Recipe":
        """The same recipe with what is not None replaced."""
        return replace(self, **{name: value for name, value in changes.items() if value is not None})
