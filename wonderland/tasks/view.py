"""View: a model with a part of the examples, for metrics, calibration and prediction."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError
from wonderland.core.batch import Batch
from wonderland.core.recipe import Ensemble
from wonderland.data.examples import Examples, RowExamples
from wonderland.nn.channel.monte_carlo import dropout_outputs
from wonderland.trust.weight_draws import WeightDraws

DROPOUT_DRAWS = 30


@dataclass(frozen=True)
class Holdout:
    """Outputs for held-out rows: of each member (m, n, c), the fold of each row (n,), the targets (n,), and the weights of
    rows (n,), None for equal ones."""

    outputs: Tensor
    fold: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None = None


@dataclass(frozen=True)
class View:
    """A model and a part of the examples.

    With `folds` (n,) for all rows, the members of an ensemble form one group for each fold; group k was not trained on fold k.
    `asked` holds options of predict that the kind of data brings; `dataset` is where the examples came from; `posterior` holds
    draws of the weights.
    """

    model: nn.Module
    examples: Examples
    part: Any
    ensemble: Ensemble | None = None
    folds: np.ndarray | None = None
    asked: Any = None
    dataset: Any = None
    posterior: WeightDraws | None = None

    @property
    def variants(self) -> int:
        """The number of variants of members, which alternate within a group."""
        return 1 if self.ensemble is None else self.ensemble.variants

    @property
    def linear(self) -> list[bool] | None:
        """Which variants are linear models; None where the model does not say."""
        flags = getattr(self.model, "linear", None)
        return flags[: self.variants] if isinstance(flags, list) else None

    @property
    def groups(self) -> int:
        """The number of groups of members."""
        return 1 if self.ensemble is None else self.ensemble.folds or 1

    @property
    def count(self) -> int:
        """The number of examples of the part."""
        return self.examples.count(self.part)

    def batches(self, size: int | None = None, most: int | None = None) -> Iterator[Batch]:
        """The examples in order, on the device of the model, which is put into evaluation mode."""
        self.model.eval()
        device = next((tensor.device for tensor in self.model.parameters()), None)
        limit = {} if size is None else {"size": size}
        for batch in self.examples.in_order(self.part, most=most, **limit):
            yield batch if device is None else batch.to(device)

    def outputs(self) -> Tensor:
        """The outputs for every row: (m, n, c), with m = 1 for a single model."""
        return torch.cat([outputs(self.model, batch["x"]) for batch in self.batches()], 1)

    def column(self, name: str) -> np.ndarray:
        """The values of a column of the data as text, for each row of the part: (n,)."""
        return self.dataset.texts_of(name)[np.asarray(self.part)]

    def ratios(self) -> np.ndarray | None:
        """How much more often each row comes where the model is to be used: (n,); None where the data do not say."""
        ratios = getattr(self.dataset, "ratios", None)
        return None if ratios is None else ratios[np.asarray(self.part)]

    def group_names(self) -> np.ndarray | None:
        """The name of the group of each row by which the data are split: (n,); None where there are none."""
        names, groups = (getattr(self.dataset, name, None) for name in ("group_names", "groups"))
        if names is None or groups is None:
            return None
        return np.array([*names, ""])[np.minimum(groups[np.asarray(self.part)], len(names))]

    def spreads(self) -> np.ndarray | None:
        """The standard deviation of each row's prediction by a model that knows it (`spread`), else None: (n,)."""
        spread = getattr(self.model, "spread", None)
        if spread is None:
            return None
        with torch.no_grad():
            return torch.cat([spread(batch["x"]) for batch in self.batches()]).cpu().numpy()

    def dropout_draws(self, draws: int = DROPOUT_DRAWS) -> Tensor:
        """Outputs with dropout on and all else as in evaluation, drawn several times: (m, n, c)."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)  # the same rows get the same answer
            drawn = [torch.stack(dropout_outputs(self.model, batch["x"], draws=draws)) for batch in self.batches()]
        joined = torch.cat([piece.flatten(0, 1) if piece.dim() == 4 else piece for piece in drawn], 1)
        return joined.detach().cpu()

    def posterior_draws(self) -> Tensor:
        """Outputs with each draw of the weights from their posterior: (m, n, c)."""
        assert self.posterior is not None
        return torch.cat([self.posterior.outputs(self.model, batch["x"]).cpu() for batch in self.batches()], 1)

    def holdout(self) -> Holdout:
        """The outputs of every member for every row, with the targets."""
        fold = np.zeros(self.count, np.int64)
        if self.folds is not None:
            fold = np.maximum(self.folds[self.part], 0).astype(np.int64)
        return Holdout(self.outputs().cpu(), fold, self.targets(), self.weights(self.part))

    def out_of_fold(self) -> Holdout:
        """Outputs for each row of the members that were not trained on it only: (members of a group, n, c).

        Without folds, the outputs of every member.
        """
        if self.folds is None:
            return self.holdout()
        assert self.ensemble is not None
        assert isinstance(self.examples, RowExamples)
        rows = [self.part[self.folds[self.part] == fold] for fold in range(self.groups)]
        longest = max(map(len, rows))
        index = np.stack([np.resize(fold_rows, longest) for fold_rows in rows]).repeat(
            self.ensemble.members // self.groups, 0
        )
        self.model.eval()
        with torch.inference_mode():
            pieces = np.array_split(index, max(1, -(-longest // 2048)), 1)
            encoded = (self.examples.inputs(piece.reshape(-1)).unflatten(0, piece.shape) for piece in pieces)
            grouped = torch.cat([self.model(x) for x in encoded], 1).unflatten(0, (self.groups, -1))
        joined = torch.cat([grouped[fold, :, : len(fold_rows)] for fold, fold_rows in enumerate(rows)], 1).clone()
        order = np.concatenate(rows)
        assert self.examples.y is not None
        return Holdout(joined.cpu(), np.zeros(len(order), np.int64), self.examples.y[order], self.weights(order))

    def weights(self, rows: np.ndarray) -> np.ndarray | None:
        """The weights of rows; None for equal ones."""
        weights = self.examples.weights if isinstance(self.examples, RowExamples) else None
        return None if weights is None else weights[rows]

    def targets(self) -> np.ndarray:
        """The targets (n,)."""
        assert isinstance(self.examples, RowExamples)
        assert self.examples.y is not None
        return self.examples.y[self.part]


def outputs(model: nn.Module, x: Any, *, chunk: int = 2048) -> Tensor:
    """The outputs for every row, computed in chunks: (m, n, c), with m = 1 for a single model.

    Inputs that are no tensor, such as graphs, come in batches already.
    """
    model.eval()
    with torch.inference_mode():
        pieces = [model(piece) for piece in (x.split(chunk) if isinstance(x, Tensor) else [x])]
        if not all(isinstance(piece, Tensor) and piece.dim() in (2, 3) for piece in pieces):
            raise WonderlandError("A model must return a tensor of shape (rows, outputs).")
        joined = torch.cat([piece if piece.dim() == 3 else piece[None] for piece in pieces], 1)
    return joined.clone()
