"""Classifier and Regressor: scikit-learn estimators around `fit`."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from wonderland.core import WonderlandError, nearest, need
from wonderland.data.source import read_source
from wonderland.data.weighted_rows import weighted_rows
from wonderland.road.memory import Fitted, OutOfFold, fit_frame
from wonderland.road.request import Request

need("sklearn", extra="datasets", why="for Classifier and Regressor")

from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin  # noqa: E402
from sklearn.metrics import get_scorer, get_scorer_names  # noqa: E402
from sklearn.utils import check_array, check_consistent_length, check_random_state, column_or_1d  # noqa: E402
from sklearn.utils.multiclass import check_classification_targets  # noqa: E402
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data  # noqa: E402


class RowEstimator(BaseEstimator):
    """What Classifier and Regressor share: frames in, weights, fitting, containers out."""

    fitted_: Fitted
    model: Any
    metric: str | None
    level: float
    steps: int | None
    lr: float | None
    random_state: Any
    options: Mapping[str, Any] | None

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.target_tags.required = True
        return tags

    def set_output(self, *, transform: str | None = None):
        """The container of predictions: "default" for arrays, "pandas" or "polars" for series and frames with column names."""
        if transform not in (None, "default", "pandas", "polars"):
            raise WonderlandError(f"The output is 'default', 'pandas' or 'polars', not {transform!r}.")
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}
        return self

    def _frame(self, X: Any, *, reset: bool) -> pd.DataFrame:
        """X as a frame with text column names, checked as scikit-learn's estimators check theirs."""
        module = type(X).__module__.split(".")[0]
        if module == "polars" and not hasattr(X, "get_columns"):
            X = X.collect()
        if module == "polars" or isinstance(X, pd.DataFrame):
            validate_data(self, X, reset=reset, skip_check_array=True)  # pyright: ignore[reportArgumentType]
            if 0 in X.shape:
                check_array(np.empty(X.shape), estimator=self)  # scikit-learn's sentence about empty data
            if module == "polars":
                X = read_source(X).frame
                assert X is not None
            X = X.set_axis([str(name) for name in X.columns], axis=1).reset_index(drop=True)
            _refuse_infinite(X)
            return X
        options: dict[str, Any] = {"dtype": None, "ensure_all_finite": "allow-nan"}
        values: Any = validate_data(self, X, reset=reset, **options)
        frame = pd.DataFrame(values, columns=[f"x{i}" for i in range(values.shape[1])])
        return frame.infer_objects() if values.dtype == object else frame

    def _weights(self, sample_weight: Any, X: Any) -> np.ndarray:
        options: dict[str, Any] = {"ensure_non_negative": True, "allow_all_zero_weights": True}
        weights = _check_sample_weight(sample_weight, np.empty((len(X), 1)), dtype=np.float64, **options)
        if not weights.any():
            raise WonderlandError(
                "Every sample_weight is zero, so there is nothing to learn from: give some rows a positive weight."
            )
        return weights

    def _request(self, task: str) -> Request:
        seed = self.random_state
        if seed is None:
            seed = 0
        elif not isinstance(seed, int | np.integer):
            seed = check_random_state(seed).randint(2**31)
        options = dict(self.options or {})
        chosen = {"model": self.model, "level": self.level, "seed": int(seed), "steps": self.steps, "lr": self.lr}
        return Request.of(**options | {name: value for name, value in chosen.items() if value is not None}, task=task)

    def _learn(
        self, frame: pd.DataFrame, y: np.ndarray, weights: np.ndarray, task: str, factor: Any = None
    ) -> OutOfFold:
        """Fit to the canonical form of the weighted rows; `factor` turns the target of a row into a factor of its weight."""
        target = "target"
        while target in frame.columns:
            target += "_"
        table = frame.assign(**{target: y})
        rows, weights = weighted_rows(table, weights)
        if len(rows) < 4:
            raise WonderlandError(
                f"{type(self).__name__} found {len(rows)} rows of positive weight that differ (n_samples={len(rows)}): "
                "it needs at least 4."
            )
        if factor is not None:
            weights = weights * factor(y[rows], weights)
        weighted = weights.max() > weights.min()
        table = table.iloc[rows].reset_index(drop=True)
        self.fitted_, out_of_fold = fit_frame(table, target, weights if weighted else None, self._request(task))
        return out_of_fold

    def _outputs(self, X: Any) -> Any:
        check_is_fitted(self)
        return self.fitted_.outputs(self._frame(X, reset=False))

    def _contained(self, values: np.ndarray, X: Any, columns: list[str]) -> Any:
        """Predictions in the container that `set_output` chose."""
        container = getattr(self, "_sklearn_output_config", {}).get("transform", "default")
        if container == "default":
            return values
        named = {name: values[:, i] for i, name in enumerate(columns)} if values.ndim == 2 else values
        if container == "polars":
            polars = need("polars", extra="polars", why="for polars output")
            return polars.DataFrame(named) if values.ndim == 2 else polars.Series(columns[0], named)
        index = getattr(X, "index", None) if isinstance(X, pd.DataFrame) else None
        return pd.DataFrame(named, index=index) if values.ndim == 2 else pd.Series(named, index=index, name=columns[0])


class Classifier(ClassifierMixin, RowEstimator):
    """A classifier for scikit-learn: `fit`'s recipe for the data at hand, calibrated probabilities, conformal sets.

    X is a pandas or polars frame (numbers, categories, dates, texts, missing cells) or an array. Rows are used up to their
    weights only: a weight of 3 is three copies, whatever the order of rows, to the bit (`weighted_rows`).

    Args:
        model: a model as in `fit`; None for the recipe's.
        class_weight: "balanced", or a weight for each class, which multiplies the weights of its rows.
        metric: the name of a scikit-learn scorer for `score`; a metric of labels, such as "f1", also sets the threshold between
            two classes, chosen on rows that each prediction was not trained on.
        level: the coverage of `predict_set`, unless it is given there.
        steps, lr: as in `fit`; None for the recipe's.
        random_state: the seed; None is 0, so that equal calls give equal models.
        options: further options of `fit`, by name.

    >>> from wonderland import Classifier
    >>> X, y = [[0.0], [0.1], [0.2], [0.3], [1.0], [1.1], [1.2], [1.3]], ["a"] * 4 + ["b"] * 4
    >>> Classifier().fit(X, y).predict([[0.05], [1.25]]).tolist()
    ['a', 'b']
    """

    def __init__(
        self,
        model: Any = None,
        *,
        class_weight: str | Mapping[Any, float] | None = None,
        metric: str | None = None,
        level: float = 0.9,
        steps: int | None = None,
        lr: float | None = None,
        random_state: Any = None,
        options: Mapping[str, Any] | None = None,
    ):
        self.model = model
        self.class_weight = class_weight
        self.metric = metric
        self.level = level
        self.steps = steps
        self.lr = lr
        self.random_state = random_state
        self.options = options

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "Classifier":
        """Fit to rows X (n, p) and their classes y (n,); rows of weight 0 take no part."""
        _check_metric(self.metric)
        frame = self._frame(X, reset=True)
        y = _targets(self, frame, y)
        check_classification_targets(y)
        weights = self._weights(sample_weight, frame)
        self.classes_ = np.unique(y[weights > 0])
        if len(self.classes_) < 2:
            raise WonderlandError(
                f"The target has one class only ({self.classes_.tolist()[0]!r}), so there is nothing to learn. Add rows of another class."
            )
        codes = np.searchsorted(self.classes_, np.where(weights > 0, y, self.classes_[0]))
        factors = None if self.class_weight is None else self._class_factors
        out_of_fold = self._learn(frame, codes, weights, "classification", factors)
        self.threshold_ = 0.5
        if self.metric is not None and len(self.classes_) == 2:
            self.threshold_ = best_threshold(self.metric, *out_of_fold)
        return self

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The `metric` of these rows, greater is better; accuracy by default."""
        if self.metric is None:
            return super().score(X, y, sample_weight)
        scorer: Any = get_scorer(self.metric)
        if not _is_of_labels(scorer):
            return float(scorer(self, X, y, **({} if sample_weight is None else {"sample_weight": sample_weight})))
        codes = {label: code for code, label in enumerate(self.classes_.tolist())}
        truth = np.array([codes.get(label, -1) for label in np.asarray(y).tolist()])
        predicted = np.searchsorted(self.classes_, self.classes_[self._best(X)])
        return float(scorer._sign * scorer._score_func(truth, predicted, sample_weight=sample_weight, **scorer._kwargs))

    def _class_factors(self, codes: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """The factor of each row's weight by its class."""
        if self.class_weight == "balanced":
            totals = np.bincount(codes, weights, minlength=len(self.classes_))
            return (totals.sum() / (len(totals) * totals))[codes]
        if not isinstance(self.class_weight, Mapping):
            raise WonderlandError(f"class_weight is 'balanced' or a weight for each class, not {self.class_weight!r}.")
        unknown = [label for label in self.class_weight if label not in self.classes_]
        if unknown:
            raise WonderlandError(f"class_weight names {unknown[0]!r}, which is no class of y.")
        return np.array([float(self.class_weight.get(label, 1.0)) for label in self.classes_.tolist()])[codes]

    def predict_proba(self, X: Any) -> Any:
        """Calibrated probabilities (n, classes), in the order of `classes_`."""
        probabilities = self._probabilities(X)
        return self._contained(probabilities, X, [str(label) for label in self.classes_])

    def predict(self, X: Any) -> Any:
        """The most likely class of each row; with a metric of labels and two classes, by the threshold that is best for it."""
        best = self._best(X)
        return self._contained(self.classes_[best], X, ["prediction"])

    def _best(self, X: Any) -> np.ndarray:
        """The code of the predicted class of each row."""
        probabilities = self._probabilities(X)
        if len(self.classes_) == 2 and self.threshold_ != 0.5:
            return (probabilities[:, 1] >= self.threshold_).astype(np.int64)
        return probabilities.argmax(1)

    def predict_set(self, X: Any, level: float | None = None) -> Any:
        """Which classes belong to the conformal set of each row: booleans (n, classes), in the order of `classes_`."""
        outputs = self._outputs(X)
        sets = self.fitted_.task.sets(outputs, self.fitted_.trust, self.level if level is None else level)
        return self._contained(sets, X, [str(label) for label in self.classes_])

    def _probabilities(self, X: Any) -> np.ndarray:
        outputs = self._outputs(X)
        probabilities = np.exp(self.fitted_.task.log_probabilities(outputs, self.fitted_.trust))
        return probabilities / probabilities.sum(1, keepdims=True)


class Regressor(RegressorMixin, RowEstimator):
    """A regressor for scikit-learn: `fit`'s recipe for the data at hand, with conformal intervals.

    X is a pandas or polars frame (numbers, categories, dates, texts, missing cells) or an array. Rows are used up to their
    weights only: a weight of 3 is three copies, whatever the order of rows, to the bit (`weighted_rows`).

    Args:
        model: a model as in `fit`; None for the recipe's.
        metric: the name of a scikit-learn scorer for `score`; None for R2.
        level: the coverage of `predict_interval`, unless it is given there.
        steps, lr: as in `fit`; None for the recipe's.
        random_state: the seed; None is 0, so that equal calls give equal models.
        options: further options of `fit`, by name.

    >>> from wonderland import Regressor
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> Regressor().fit(X, 3 * X[:, 0] + 1).predict([[0.5]]).round(1).tolist()
    [2.5]
    """

    def __init__(
        self,
        model: Any = None,
        *,
        metric: str | None = None,
        level: float = 0.9,
        steps: int | None = None,
        lr: float | None = None,
        random_state: Any = None,
        options: Mapping[str, Any] | None = None,
    ):
        self.model = model
        self.metric = metric
        self.level = level
        self.steps = steps
        self.lr = lr
        self.random_state = random_state
        self.options = options

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "Regressor":
        """Fit to rows X (n, p) and their numbers y (n,); rows of weight 0 take no part."""
        _check_metric(self.metric)
        frame = self._frame(X, reset=True)
        y = _targets(self, frame, y, numeric=True)
        self._learn(frame, y, self._weights(sample_weight, frame), "regression")
        return self

    def predict(self, X: Any) -> Any:
        """The predicted number of each row (n,)."""
        outputs = self._outputs(X)
        return self._contained(self.fitted_.task.values(outputs, self.fitted_.trust), X, ["prediction"])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The `metric` of these rows, greater is better; R2 by default."""
        if self.metric is None:
            return super().score(X, y, sample_weight)
        scorer: Any = get_scorer(self.metric)
        return float(scorer(self, X, y, **({} if sample_weight is None else {"sample_weight": sample_weight})))

    def predict_interval(self, X: Any, level: float | None = None) -> Any:
        """The low and high end of the conformal interval of each row: (n, 2)."""
        outputs = self._outputs(X)
        level = self.level if level is None else level
        spreads = self.fitted_.spreads(self._frame(X, reset=False))
        ends = self.fitted_.task.intervals(outputs, self.fitted_.trust, level, spreads=spreads)
        return self._contained(np.stack(ends, 1), X, ["low", "high"])


def best_threshold(metric: str, prediction: np.ndarray, y: np.ndarray, weights: np.ndarray | None) -> float:
    """The threshold on the probability of the second class with the best metric, for rows that were not trained on.

    Shapes: log-probabilities (n, 2), codes (n,), weights (n,). At most 199 thresholds are tried; 0.5 for metrics of probabilities.
    """
    scorer: Any = get_scorer(metric)
    if not _is_of_labels(scorer):
        return 0.5
    probability = 1 / (1 + np.exp(prediction[:, 0] - prediction[:, 1]))
    candidates = np.unique(np.append(np.quantile(probability, np.linspace(0.005, 0.995, 199)), 0.5))

    def score(threshold: float) -> float:
        predicted = (probability >= threshold).astype(np.int64)
        return scorer._sign * scorer._score_func(y, predicted, sample_weight=weights, **scorer._kwargs)

    scores = np.array([score(threshold) for threshold in candidates])
    best = candidates[scores >= scores.max() - 1e-12]
    return float(best[np.abs(best - 0.5).argmin()])


def _check_metric(metric: str | None) -> None:
    """Refuse a name that is no scorer before anything is fitted."""
    if isinstance(metric, str) and metric not in get_scorer_names():
        hint = nearest(metric, get_scorer_names()) or " sklearn.metrics.get_scorer_names() lists them."
        raise WonderlandError(f"scikit-learn has no metric {metric!r}.{hint}")


def _is_of_labels(scorer: Any) -> bool:
    """Whether a scorer compares predicted labels."""
    return getattr(scorer, "_response_method", None) == "predict"


def _refuse_infinite(frame: pd.DataFrame) -> None:
    """Infinite values by the row that the user has: fit puts rows in another order."""
    for i, kind in enumerate(frame.dtypes):
        if getattr(kind, "kind", "") == "f":
            infinite = np.isinf(frame.iloc[:, i].to_numpy(np.float64, na_value=np.nan))
            if infinite.any():
                raise WonderlandError(
                    f"Column {frame.columns[i]!r} holds an infinite value in row {int(infinite.argmax()) + 1}. Correct it, or "
                    "leave the cell empty."
                )


def _targets(estimator: Any, frame: pd.DataFrame, y: Any, numeric: bool = False) -> np.ndarray:
    """y as one array, checked as scikit-learn checks it."""
    if y is None:
        raise WonderlandError(
            f"This {type(estimator).__name__} estimator requires y to be passed, but the target y is None."
        )
    y = y.to_numpy() if hasattr(y, "to_numpy") else y
    y = column_or_1d(y, warn=True)
    kind: Any = np.float64 if numeric else None
    y = check_array(y, ensure_2d=False, dtype=kind, input_name="y", estimator=estimator)
    check_consistent_length(frame, y)
    return y
