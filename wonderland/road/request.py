"""Request: the options that the user gave, as config.json stores them."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wonderland.core import Spec, WonderlandError, nearest, write_spec
from wonderland.core.options import described, given, make
from wonderland.kinds import KINDS
from wonderland.road.parts import implied_task
from wonderland.road.training import Training
from wonderland.train import seconds

_PATHS = ("start", "tokenizer", "cost", "weight_to")


@dataclass(frozen=True)
class Request:
    """The kind that was named (None: inferred), the options given for the kind of data, and those of training."""

    kind: str | None
    options: Mapping[str, Any]
    training: Training

    @staticmethod
    def of(kind: str | None = None, **asked: Any) -> "Request":
        """From keyword arguments; for an unknown option the error names the nearest one."""
        training = described(Training)
        known = dict.fromkeys(name for owner in KINDS.values() for name in described(owner.Options))
        for name in asked:
            if name not in training and name not in known:
                raise WonderlandError(f"fit has no option {name!r}.{nearest(name, [*training, *known])}")
        if kind is not None and kind not in KINDS:
            raise WonderlandError(
                f"There is no kind {kind!r}.{nearest(str(kind), KINDS)} Known are {', '.join(KINDS)}."
            )
        asked = {name: _to_json_value(name, value) for name, value in asked.items() if value is not None}
        training_options = make(Training, {name: value for name, value in asked.items() if name in training})
        options = {name: value for name, value in asked.items() if name not in training}
        if "family" in str(training_options.model) and "task" not in options:
            options |= {"task": implied_task(training_options.model)}
        # In one order, so that the same options make the same config.json, from the shell and from Python.
        options = {name: options[name] for name in known if options.get(name) is not None}
        kind_options = {name: value for name, value in options.items() if value is not False and value != []}
        return Request(kind, kind_options, training_options)

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        return {"kind": self.kind, "options": dict(self.options), "training": given(self.training)}

    @staticmethod
    def from_json(value: Any) -> "Request":
        """Read what `to_json` returned."""
        try:
            kind, options, training = value["kind"], dict(value["options"]), dict(value["training"])
        except (KeyError, TypeError, ValueError) as error:
            raise WonderlandError("config.json holds no request: it is damaged or not ours.") from error
        if set(options) & set(training) or "kind" in options:
            raise WonderlandError("config.json holds no request: it is damaged or not ours.")
        return Request.of(kind, **options, **training)


def _to_json_value(name: str, value: Any) -> Any:
    """A value as JSON stores it."""
    if name == "budget":
        return seconds(value)
    if name in _PATHS and isinstance(value, str | Path):
        return str(Path(value).expanduser().absolute())
    if isinstance(value, Spec):
        return write_spec(value)
    if isinstance(value, tuple | set):
        return list(value)
    if isinstance(value, str) and _holds_names(name):
        return [value]
    return value


def _holds_names(name: str) -> bool:
    """Whether an option of some kind of data takes several names."""
    return any(tuple in options[name].types for kind in KINDS.values() if name in (options := described(kind.Options)))
