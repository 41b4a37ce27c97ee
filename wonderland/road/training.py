"""Training options: the options of a fit that do not depend on the kind of data."""

from dataclasses import dataclass
from typing import Any

from wonderland.core import WonderlandError, nearest
from wonderland.core.options import check, option

DEVICES = ("auto", "cpu", "cuda", "mps")


@dataclass(frozen=True)
class Training:
    """Options of a fit; None leaves a choice to the recipe of the kind of data."""

    model: str | None = option(
        help='the model, by name or as a call: "Decoder(dim=128, mixer=Mamba())"; wonderland models lists them',
        metavar="MODEL",
    )
    optimizer: str | None = option(help='the optimizer as a call, such as "Lion(lr=1e-4)"', metavar="OPTIMIZER")
    schedule: str | None = option(help='the schedule as a call, such as "cosine()"', metavar="SCHEDULE")
    settings: tuple[str, ...] = option(
        (),
        help="change one setting of the recipe: lr, batch_size, model.depth, optimizer.weight_decay, and so on; may be repeated",
        metavar="PATH=VALUE",
        flag="--set",
        words="texts such as model.depth=4",
    )
    epochs: float | None = option(help="passes over the training rows", above=0)
    steps: int | None = option(help="updates of the weights", least=1)
    budget: float | None = option(help="time for training, such as 90s or 5m", metavar="TIME")
    lr: float | str | None = option(help="peak learning rate, or auto to find one", above=0, words="a number or auto")
    scale_lr: str | None = option(
        help="scale the recipe's rate with the batch size over the recipe's: linear (gradient descent) or root (Adam)",
        choices=("linear", "root"),
    )
    weight_decay: float | None = option(help="weight decay of the optimizer", least=0)
    batch_size: int | None = option(help="examples in a step", least=1)
    clip: float | None = option(help="largest norm of the gradient", above=0)
    accumulate: int | None = option(
        help="pieces a batch is split into, to save memory (gradient accumulation)", least=1
    )
    precision: str | None = option(
        help="precision of the computation (default float32)", choices=("float32", "bfloat16")
    )
    patience: int | None = option(help="evaluations without progress before stopping", least=1)
    threads: int | None = option(help="threads for computing", least=1, most=1024)
    device: str = option("auto", help="where to compute (default auto: a GPU if there is one)", choices=DEVICES)
    test: float | str = option(
        0.2, help="share of the examples kept for the test (default 0.2), or a file of test rows",
        words="a share of the rows, or a test set",
    )  # fmt: skip
    level: float = option(0.9, help="coverage level of sets and intervals (default 0.9)")
    conformal: str | None = option(
        help="form of sets and intervals: split, cross, class, group:COLUMN, aps, raps (classes), cqr (numbers)",
        metavar="FORM",
    )
    metric: str | None = option(
        help="decide classes so that this metric is best on validation rows: f1, balanced_accuracy, accuracy",
        metavar="METRIC",
    )
    cost: str | None = option(help="decide by expected cost: a CSV table, a row for each true class", metavar="FILE")
    abstain: float | None = option(
        help="leave rows to a person so that answers are wrong at most this often, such as 0.05", above=0
    )
    uncertainty: str | None = option(
        help="columns of aleatoric and epistemic uncertainty in predictions, from members, dropout, or draws of the weights",
        choices=("ensemble", "dropout", "laplace", "swag"),
    )
    weight_to: str | None = option(
        help="weight training rows towards the rows of this file, which needs no target (covariate shift)",
        metavar="FILE",
    )
    leaderboard: str = option(
        "all",
        help="simple methods measured beside the model, where the kind has them (default all)",
        choices=("all", "none"),
    )
    seed: int = option(0, help="the same seed gives the same run (default 0)", least=0, most=2**63 - 1)

    def __post_init__(self):
        check(self)
        if not 0 < self.level < 1:
            raise WonderlandError(
                f"The level of sets and intervals is a share between 0 and 1, such as 0.9, not {self.level}."
            )
        if self.conformal is not None and not self.conformal.startswith("group:"):
            forms = ("split", "cross", "class", "group:COLUMN", "aps", "raps", "cqr")
            if self.conformal not in forms or self.conformal == "group:COLUMN":
                raise WonderlandError(
                    f"There is no conformal {self.conformal!r}.{nearest(self.conformal, forms)} Known are {', '.join(forms)}."
                )
        if self.abstain is not None and not 0 < self.abstain < 1:
            raise WonderlandError(
                f"abstain is a share of wrong answers between 0 and 1, such as 0.05, not {self.abstain}."
            )
        if isinstance(self.lr, str) and self.lr != "auto":
            raise WonderlandError(f"lr must be a number or auto, not {self.lr!r}.")
        if self.scale_lr is not None and self.lr is not None:
            raise WonderlandError("scale_lr changes the rate of the recipe: leave out lr, or scale_lr.")
        if sum(value is not None for value in (self.epochs, self.steps, self.budget)) > 1:
            raise WonderlandError("Choose one of epochs, steps and budget: each of them sets the length of training.")
        if not isinstance(self.test, str) and not 0 < self.test < 1:
            raise WonderlandError(f"The test part is a share between 0 and 1, such as 0.2, not {self.test}.")

    @property
    def test_share(self) -> float:
        """The share of examples to keep for the test; 0 with a separate test set."""
        return 0.0 if isinstance(self.test, str) else self.test

    def numbers(self) -> dict[str, Any]:
        """The options that replace numbers of the recipe."""
        names = ("batch_size", "clip", "accumulate", "precision", "patience")
        rate = {} if isinstance(self.lr, str) else {"lr": self.lr}
        return {name: vars(self)[name] for name in names} | rate
