"""Recipe: everything a training needs to know, as specs and numbers. Nothing in it is measured again."""

from dataclasses import dataclass, fields, replace
from typing import Any

from wonderland.core import Spec, WonderlandError

_NUMBER, _NONE = (int, float), type(None)
_KINDS: dict[str, tuple[type, ...]] = {
    "kind": (str,),
    "steps": (int,),
    "batch_size": (int,),
    "lr": _NUMBER,
    "weight_decay": _NUMBER,
    "betas": (list,),
    "warmup": _NUMBER,
    "average": (*_NUMBER, _NONE),
    "clip": (*_NUMBER, _NONE),
    "accumulate": (int,),
    "precision": (str,),
    "evaluate_every": (int,),
    "patience": (int, _NONE),
    "folds": (int, _NONE),
    "members": (int,),
    "kinds": (int,),
    "augment": (dict, _NONE),
    "workers": (int,),
}


@dataclass(frozen=True)
class Recipe:
    """How a model is made and taught.

    `model` is a spec, or the class name of a user's own module. With `folds`, members form that many groups; group k never
    sees fold k and is judged on it; without, the validation part judges. That judgement decides which weights are kept.
    `kinds` of members take turns within a group.
    """

    kind: str
    model: Spec | str
    task: Spec
    steps: int
    batch_size: int
    lr: float
    weight_decay: float = 0.01
    betas: tuple[float, float] = (0.9, 0.999)
    warmup: float = 0.05
    average: float | None = None
    clip: float | None = 1.0
    accumulate: int = 1
    precision: str = "float32"
    evaluate_every: int = 1
    patience: int | None = None
    folds: int | None = None
    members: int = 0
    kinds: int = 1
    augment: dict[str, Any] | None = None
    workers: int = 0

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        found["model"] = {"own": self.model} if isinstance(self.model, str) else self.model.to_json()
        return found | {"task": self.task.to_json(), "betas": list(self.betas)}

    @staticmethod
    def from_json(value: dict[str, Any]) -> "Recipe":
        """Back from `to_json`."""
        try:
            for field in fields(Recipe):
                kinds = _KINDS.get(field.name, (object,))
                if not isinstance(value[field.name], kinds) or isinstance(value[field.name], bool):
                    raise TypeError(field.name)
            if (
                min(value["steps"], value["batch_size"], value["accumulate"], value["evaluate_every"], value["kinds"])
                < 1
            ):
                raise TypeError("sizes")
            own = value["model"].get("own")
            model = own if isinstance(own, str) else Spec.from_json(value["model"])
            return Recipe(
                **{**value, "model": model, "task": Spec.from_json(value["task"]), "betas": tuple(value["betas"])}
            )
        except (KeyError, TypeError, AttributeError, IndexError) as error:
            raise WonderlandError("config.json does not hold a whole recipe: it is damaged or not ours.") from error

    def changed(self, **changes: Any) -> "Recipe":
        """The same recipe with what is not None replaced."""
        return replace(self, **{name: value for name, value in changes.items() if value is not None})
