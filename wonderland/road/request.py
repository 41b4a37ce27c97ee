"""Request: what the user asked for, in words and numbers that config.json keeps."""

import math
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from wonderland.core import WonderlandError, nearest
from wonderland.train import seconds
from wonderland.trust import check_level

KINDS = ("table", "text", "corpus", "pairs")
METHODS = ("full", "head", "lora", "ia3", "bias")
MOST_THREADS = 1024
TOKENS = ("characters", "words", "bpe", "wordpiece", "unigram")

_TEXT, _WHOLE, _NUMBER = ((str,), "text"), ((int,), "a whole number"), ((int, float), "a number")
_KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "target": _TEXT,
    "task": _TEXT,
    "group": _TEXT,
    "time": _TEXT,
    "keep": ((tuple,), "names of columns"),
    "drop": ((tuple,), "names of columns"),
    "strict": ((bool,), "True or False"),
    "size": _WHOLE,
    "epochs": _NUMBER,
    "steps": _WHOLE,
    "budget": _NUMBER,
    "lr": ((int, float, str), "a number or auto"),
    "weight_decay": _NUMBER,
    "batch_size": _WHOLE,
    "clip": _NUMBER,
    "accumulate": _WHOLE,
    "precision": _TEXT,
    "patience": _WHOLE,
    "workers": _WHOLE,
    "test": ((int, float, str), "a share of the rows, or a test set"),
    "level": _NUMBER,
    "seed": _WHOLE,
    "threads": _WHOLE,
    "kind": _TEXT,
    "lines": ((bool,), "True or False"),
    "column": _TEXT,
    "tokens": _TEXT,
    "vocab": _WHOLE,
    "tokenizer": _TEXT,
    "context": _WHOLE,
    "start": _TEXT,
    "method": _TEXT,
}


@dataclass(frozen=True)
class Request:
    """Options of a fit; None leaves a choice to the recipe."""

    target: str | None = None
    task: str | None = None
    group: str | None = None
    time: str | None = None
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    strict: bool = False
    size: int | None = None
    epochs: float | None = None
    steps: int | None = None
    budget: float | None = None
    lr: float | str | None = None
    weight_decay: float | None = None
    batch_size: int | None = None
    clip: float | None = None
    accumulate: int | None = None
    precision: str | None = None
    patience: int | None = None
    workers: int | None = None
    test: float | str = 0.2
    level: float = 0.9
    seed: int = 0
    threads: int | None = None
    kind: str | None = None
    lines: bool = False
    column: str | None = None
    tokens: str | None = None
    vocab: int | None = None
    tokenizer: str | None = None
    context: int | None = None
    start: str | None = None
    method: str | None = None

    @staticmethod
    def of(**options: Any) -> "Request":
        """From keyword arguments; an unknown one is answered with the nearest."""
        known = [field.name for field in fields(Request)]
        for name in options:
            if name not in known:
                raise WonderlandError(f"fit has no option {name!r}.{nearest(name, known)}")
        for name in ("keep", "drop"):
            if isinstance(options.get(name), str):
                options[name] = (options[name],)
            given = options.get(name) or ()
            options[name] = tuple(given) if isinstance(given, list | tuple | set) else given
        for name in ("start", "tokenizer"):
            if isinstance(options.get(name), str | Path):
                options[name] = str(Path(options[name]).expanduser().absolute())
        if options.get("budget") is not None:
            options["budget"] = seconds(options["budget"])
        request = Request(**options)
        request.check()
        return request

    def check(self) -> None:
        """Refuse what cannot be meant."""
        for field in fields(self):
            value, (kinds, words) = getattr(self, field.name), _KINDS[field.name]
            if value is not None and (not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds)):
                raise WonderlandError(f"{field.name} must be {words}, not {value!r}.")
            if isinstance(value, float) and not math.isfinite(value):
                raise WonderlandError(f"{field.name} must be a finite number, not {value}.")
        check_level(self.level)
        if sum(value is not None for value in (self.epochs, self.steps, self.budget)) > 1:
            raise WonderlandError("Choose one of epochs, steps and budget: each of them sets the length of training.")
        if not isinstance(self.test, str) and not 0 < self.test < 1:
            raise WonderlandError(f"The test part is a share between 0 and 1, such as 0.2, not {self.test}.")
        if not 0 <= self.seed < 2**63:
            raise WonderlandError(f"seed must be at least 0, not {self.seed}.")
        least = {"epochs": 0.0, "steps": 1, "batch_size": 1, "accumulate": 1, "patience": 1, "threads": 1, "size": 8,
                 "vocab": 2, "context": 1}  # fmt: skip
        for name, bound in least.items():
            value = getattr(self, name)
            if value is not None and (value < bound or value == 0):
                raise WonderlandError(f"{name} must be {f'at least {bound}' if bound else 'more than 0'}, not {value}.")
        if self.threads is not None and self.threads > MOST_THREADS:
            raise WonderlandError(f"threads must be at most {MOST_THREADS:,}, not {self.threads:,}.")
        for name in ("lr", "weight_decay", "clip", "workers"):
            value = getattr(self, name)
            if isinstance(value, str) and (name, value) != ("lr", "auto"):
                raise WonderlandError(f"{name} must be a number{' or auto' if name == 'lr' else ''}, not {value!r}.")
            if isinstance(value, int | float) and (value < 0 or (name in ("lr", "clip") and value == 0)):
                raise WonderlandError(f"{name} must not be {'negative' if value < 0 else 'zero'}, as {value} is.")
        if self.method is not None and self.start is None:
            raise WonderlandError("method says how a checkpoint is tuned: name the checkpoint with start (--from).")
        for name in ("tokens", "vocab"):
            if self.tokenizer is not None and getattr(self, name) is not None:
                raise WonderlandError(
                    f"{name} is for tokens that are to be learned, and tokenizer names those of a file."
                )
        if self.precision not in (None, "float32", "bfloat16"):
            raise WonderlandError(f"precision is float32 or bfloat16, not {self.precision!r}.")

        for name, choices in {"kind": KINDS, "tokens": TOKENS, "method": METHODS}.items():
            value = getattr(self, name)
            if value is not None and value not in choices:
                known = ", ".join(choices)
                raise WonderlandError(f"There is no {name} {value!r}.{nearest(value, choices)} Known are {known}.")

    def refuse_tokenizer(self, name: str) -> None:
        """Say that a tokenizer of one's own is not for data of this name."""
        if self.tokenizer is not None:
            raise WonderlandError(
                f"tokenizer is for plain text, which {name} is not: classes and pairs of texts learn their own tokens."
            )

    def cut(self) -> dict[str, Any]:
        """What was asked of the tokens of texts: their kind, their number, and how many of them are read."""
        asked = {name: getattr(self, name) for name in ("tokens", "vocab", "context")}
        return {name: value for name, value in asked.items() if value is not None}

    def to_json(self) -> dict[str, Any]:
        """As plain JSON."""
        return asdict(self) | {"keep": list(self.keep), "drop": list(self.drop)}

    @staticmethod
    def from_json(value: Any) -> "Request":
        """Back from `to_json`."""
        if not isinstance(value, dict):
            raise WonderlandError("config.json holds no request: it is damaged or not ours.")
        return Request.of(**value)
