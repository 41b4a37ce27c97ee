"""Control: a policy that is measured by the return of its episodes."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from wonderland.core import WonderlandError, part
from wonderland.core.batch import Batch
from wonderland.tasks.action_answers import ActionAnswers
from wonderland.tasks.task import Task, Trust
from wonderland.tasks.view import View
from wonderland.trust.conformal import check_level
from wonderland.understand.format import number, percent
from wonderland.understand.sections import SECTIONS, Section
from wonderland.understand.sections.episode import episode


class ReturnTrust(Trust):
    r"""Returns of calibration episodes: the next one lies between two of them with a stated probability.

    .. math:: P(R_{(l)} \le R \le R_{(u)}) \ge \text{level}, \quad l = \lfloor (n+1) \alpha / 2 \rfloor,\ u = \lceil (n+1)(1 - \alpha/2) \rceil
    """

    def __init__(self, returns: list[float], level: float):
        self.returns, self.level = sorted(returns), level

    def interval(self, level: float) -> tuple[float, float]:
        """The interval of one more return; without end where there are too few for this level."""
        n, alpha = len(self.returns), 1 - level
        low, high = math.floor((n + 1) * alpha / 2 + 1e-9), math.ceil((n + 1) * (1 - alpha / 2) - 1e-9)
        return (
            self.returns[low - 1] if low >= 1 else -math.inf,
            self.returns[high - 1] if high <= n else math.inf,
        )

    def to_json(self) -> dict[str, Any]:
        return {"returns": self.returns, "level": self.level}


def mean_interval(returns: np.ndarray) -> tuple[float, float]:
    """The mean of returns with its 95 % interval, by the normal approximation."""
    half = 1.96 * float(returns.std(ddof=1)) / math.sqrt(len(returns)) if len(returns) > 1 else 0.0
    return float(returns.mean()) - half, float(returns.mean()) + half


@part
class Control(Task):
    r"""Choose actions so that the sum of rewards of an episode is large.

    .. math:: J(\pi) = E_\pi\Big[\sum_t r_t\Big]

    The measures are those of episodes with the best action of each moment; `watch` is minus their mean return. Learners of
    `wonderland.rl` bring losses of their own. Book: D2L 17.

    >>> Control(actions=2).arguments()
    {'actions': 2, 'continuous': False}
    """

    name, watch, unit = "control", "negative_return", "episode"

    def __init__(self, actions: int, continuous: bool = False):
        if not isinstance(actions, int) or isinstance(actions, bool) or actions < 1 or not isinstance(continuous, bool):
            raise WonderlandError(f"Control needs at least one action, not {actions!r}.")
        self.actions, self.continuous, self.outputs = actions, continuous, actions

    def arguments(self) -> dict[str, Any]:
        return {"actions": self.actions, "continuous": self.continuous}

    def model_arguments(self) -> dict[str, Any]:
        return {"actions": self.actions, "continuous": self.continuous}

    def loss(self, model: nn.Module, batch: Batch) -> tuple[Tensor, float]:
        """The mean square of the outputs: enough to try whether gradients reach a model. Learners have their own losses."""
        return model(batch["x"]).square().mean(), len(batch)

    def check_model(self, model: nn.Module, batch: Batch) -> str | None:
        if not hasattr(model, "act"):
            return "has no method act, by which policies choose actions: use ActorCritic or QNetwork"
        return None

    def measure(self, view: View) -> dict[str, float]:
        returns, lengths = self.played(view)
        return {
            "return": float(returns.mean()),
            "negative_return": -float(returns.mean()),
            "length": float(lengths.mean()),
        }

    def played(self, view: View) -> tuple[np.ndarray, np.ndarray]:
        """Return and length of every episode of a part."""
        view.model.eval()
        return view.examples.play(view.model, view.part)  # pyright: ignore

    def calibrate(self, validation: View, calibration: View, level: float) -> ReturnTrust:
        return ReturnTrust(self.played(calibration)[0].tolist(), check_level(level))

    def trust(self, saved: Any) -> ReturnTrust:
        try:
            returns, level = saved["returns"], check_level(saved["level"])
            if not returns or not all(isinstance(value, int | float) and math.isfinite(value) for value in returns):
                raise TypeError
            return ReturnTrust([float(value) for value in returns], level)
        except (KeyError, TypeError, OverflowError) as error:
            raise WonderlandError("trust.json does not hold returns of episodes: it is damaged or not ours.") from error

    def evaluate(self, view: View, trust: ReturnTrust, level: float | None = None) -> dict[str, Any]:
        level = trust.level if level is None else check_level(level)
        returns, lengths = self.played(view)
        low, high = mean_interval(returns)
        between = trust.interval(level)
        inside = float(((returns >= between[0]) & (returns <= between[1])).mean())
        metrics = {"return": float(returns.mean()), "return_low": low, "return_high": high, "deviation": float(returns.std()),
                   "worst": float(returns.min()), "length": float(lengths.mean())}  # fmt: skip
        return {"rows": len(returns), "metrics": metrics, "conformal": {"level": level, "coverage": inside, "note": ""}}

    def predictions(self, view: View, trust: ReturnTrust, level: float | None = None) -> pd.DataFrame:
        """A row for each episode of an environment, or the action for each observation of a table."""
        low, high = trust.interval(trust.level if level is None else level)
        if hasattr(view.examples, "play"):
            returns, lengths = self.played(view)
            return pd.DataFrame(
                {"episode": np.asarray(view.part), "prediction": returns, "length": lengths, "low": low, "high": high}
            )
        outputs = torch.cat([view.model(batch["x"]) for batch in view.batches()]).detach()[:, : self.actions]
        if self.continuous:
            return pd.DataFrame(
                {
                    f"prediction {i}" if i else "prediction": outputs[:, i].clamp(-1, 1).numpy()
                    for i in range(self.actions)
                }
            )
        shares = outputs.softmax(-1).numpy()
        table = pd.DataFrame({"prediction": outputs.argmax(-1).numpy()})
        return table.assign(**{f"p({i})": shares[:, i] for i in range(self.actions)})

    def answers(self, trust: ReturnTrust, level: float) -> nn.Module | str:
        return ActionAnswers(self.actions, self.continuous)

    def difference(self, table: pd.DataFrame, exported: Mapping[str, Any]) -> float:
        """Of probabilities, or of continuous actions; another choice counts by how much less probable it is."""
        if self.continuous:
            return float(np.abs(table.to_numpy() - exported["prediction"]).max(initial=0.0))
        expected = table[[f"p({i})" for i in range(self.actions)]].to_numpy()
        chosen = expected[np.arange(len(expected)), exported["prediction"]]
        return float(
            max(
                np.abs(expected - exported["probabilities"]).max(initial=0.0),
                (expected.max(1) - chosen).max(initial=0.0),
            )
        )

    def check_run(self, model: Any, encoder: Any, trust: Any, folds: int) -> str | None:
        if not hasattr(model, "act") or model.actions != self.actions or model.continuous != self.continuous:
            return "the policy and the task in config.json do not belong together."
        if (encoder.known.actions, encoder.known.continuous) != (self.actions, self.continuous):
            return "preprocess.json is for other actions than config.json: the two do not belong together."
        if model.features != encoder.known.features:
            return "preprocess.json is for other observations than the policy: the two do not belong together."
        return None

    def facts(self, view: View, trust: ReturnTrust, record: Mapping[str, Any], dataset: Any) -> dict[str, Any]:
        metrics, n = record["metrics"], record["rows"]
        low, high = trust.interval(trust.level)
        verdict = (
            f"Return {number(metrics['return'])} on average over {n} episodes (95 % interval {number(metrics['return_low'])} to "
            f"{number(metrics['return_high'])}); {percent(trust.level)} of episodes end between {number(low)} and {number(high)}."
        )
        return {"verdict": verdict, "conformal": None, "answers": "actions"}

    def curves(self) -> list[tuple[str, str, bool]]:
        return [("return", "return", False), ("loss", "loss", False)]

    def sections(self, record: Mapping[str, Any]) -> tuple[Section, ...]:
        return (*SECTIONS[:2], Section("episode", "Episode", "One episode", episode), *SECTIONS[2:])

    def next_commands(self, folder: str) -> list[tuple[str, str]]:
        return [
            ("Play other episodes", f"wonderland evaluate {folder} gym:NAME"),
            ("Actions for a table of observations", f"wonderland predict {folder} OBSERVATIONS.csv -o actions.csv"),
        ]
