"""The loop: any step, any state, any batches; progress, records, early stopping, and exact resume.

`run` prepares, then repeats: fetch a batch, call the step, check for NaN, record, evaluate, save. Everything that could change
a later result is in the checkpoint, so a run that is interrupted anywhere and resumed gives the same bits as one that was not.

In a group of processes (`parallel.joined`) all run the same loop: the step divides the batch and adds up gradients, the first
process evaluates and writes, and all decide alike.
"""

import math
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch

from wonderland.core import WonderlandError, lock
from wonderland.core.schema import entries, number, optional, true_or_false, values, whole
from wonderland.train import guard
from wonderland.train.checkpoint import Checkpoints
from wonderland.train.parallel.group import Group, current
from wonderland.train.parallel.shard import Sharded
from wonderland.train.progress import Progress, default_progress, show_next_round, show_progress
from wonderland.train.records import Records
from wonderland.train.signals import Stopped, stop_requests
from wonderland.train.state import State, random_state, set_random_state
from wonderland.train.stopping import Rounds

Step = Callable[[State, Any], dict[str, Any]]


@runtime_checkable
class BatchStream(Protocol):
    """Batches that know their epoch and can be started anywhere, such as `wonderland.data.Batches`."""

    per_epoch: int

    def stream(self, first: int, stop: int) -> Generator[Any, None, None]: ...


Evaluate = Callable[[State], dict[str, float]]


@dataclass
class LoopState:
    """What the loop itself needs for an exact resume: sums since the last record, the best value so far, patience."""

    sums: dict[str, float] = field(default_factory=dict)
    counted: int = 0
    best_value: float | None = None
    best_step: int = 0
    worse: int = 0
    finished: bool = False

    def add(self, scalars: dict[str, float]) -> None:
        """Add the scalars of one step to the sums for the next record."""
        for name, value in scalars.items():
            self.sums[name] = self.sums.get(name, 0.0) + value
        self.counted += 1

    def means(self) -> dict[str, float]:
        """Means since the last record; resets the sums."""
        means = {name: total / self.counted for name, total in self.sums.items()}
        self.sums, self.counted = {}, 0
        return means


@dataclass
class Outcome:
    """The result of training: the state with the best weights, and the recorded metrics."""

    state: State
    rows: list[dict[str, Any]]
    best_step: int
    best_value: float | None
    stopped_early: bool


def run(
    step: Step,
    state: State,
    batches: Any,
    *,
    steps: int,
    folder: str | Path | None = None,
    evaluate: Evaluate | None = None,
    evaluate_every: int | None = None,
    watch: str | None = "validation/loss",
    larger_is_better: bool = False,
    patience: int | None = None,
    rounds: Rounds | None = None,
    record_every: int | None = None,
    progress: Progress | bool = False,
    label: str = "training",
    tensorboard: bool = False,
    checkpoint_seconds: float = 1.0,
    identity: str = "",
) -> Outcome:
    """Call `step(state, batch)` `steps` times in all, resuming from `folder` if an earlier call was interrupted.

    Args:
        step: changes the state for one batch and returns scalars by name, the loss among them.
        state: everything the step changes.
        batches: a function of the step number, a sequence that is repeated, or `wonderland.data.Batches`.
        steps: how many steps the whole training has, those of earlier calls included.
        folder: where checkpoints and records go; None trains in memory only.
        evaluate: called every `evaluate_every` steps and at the end; its scalars are recorded.
        watch: which of those scalars decides the best weights, which are restored at the end; None keeps the last ones.
        patience: stop after this number of evaluations without a new best.
        rounds: train on after `steps`, in further rounds, while the watched measure falls.
        record_every: how often the mean training scalars are recorded; by default with each evaluation.
        progress: True for a live bar (lines where there is no terminal), False for silence.
        checkpoint_seconds: the least time between two checkpoints.
        identity: what the training depends on, such as a digest of its options; a checkpoint of another one is refused.

    >>> import torch
    >>> from torch import nn
    >>> model = nn.Linear(1, 1, bias=False)
    >>> state = State(model=model, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))
    >>> def descend(state, batch):
    ...     loss = (state.model(batch) - 2 * batch).square().mean()
    ...     state.optimizer.zero_grad()
    ...     loss.backward()
    ...     state.optimizer.step()
    ...     return {"loss": loss.item()}
    >>> outcome = run(descend, state, [torch.tensor([[1.0], [2.0]])], steps=100)
    >>> round(model.weight.item(), 3)
    2.0
    """
    if steps < 1:
        raise WonderlandError(f"Training needs at least one step, not {steps}.")
    folder, group, base = Path(folder) if folder is not None else None, current(), torch.initial_seed()
    records = Records(folder if group.first else None, tensorboard=tensorboard and group.first)
    checkpoints = Checkpoints(folder / "checkpoint", least=checkpoint_seconds) if folder else None
    writes = checkpoints is not None and group.first
    display = default_progress(progress) if isinstance(progress, bool) else progress
    per_epoch = batches.per_epoch if isinstance(batches, BatchStream) else None
    ends = (steps,) if rounds is None else rounds.ends
    evaluate_interval = evaluate_every or per_epoch or math.ceil(steps / 20)
    record_interval = record_every or evaluate_interval

    with lock(checkpoints.folder) if checkpoints and group.first else nullcontext(), stop_requests() as stop_request, closing(records):  # fmt: skip
        memory, best = _resume(state, records, checkpoints, identity)
        group.wait()  # before a checkpoint that others still read is deleted
        first = state.step

        def save() -> None:
            if checkpoints:
                now = {"state": state.state_dict(), "best": best, "memory": asdict(memory), "identity": identity}
                if writes:
                    checkpoints.save(state.step, {**now, "random": random_state(), "records": records.size()})

        if state.step == 0:
            save()  # so that even a run killed at once resumes from the same weights
        shown = next((end for end in ends if end > first), ends[-1])
        with closing(stream(batches, first, ends[-1])) as source, show_progress(display, label, first, shown, batches):
            while state.step < ends[-1] and not memory.finished:
                batch = next(source)
                group.seed(base, state.step)
                scalars = _numbers(step(state, batch))
                guard.check(scalars, step, state, batch)
                state.step += 1
                memory.add(scalars)

                evaluate_now = state.step % evaluate_interval == 0 or state.step in ends
                if evaluate_now or state.step % record_interval == 0:
                    row = {"step": state.step, **memory.means()}
                    if per_epoch:
                        row["epoch"] = state.step / per_epoch
                    if evaluate and evaluate_now:
                        row |= _evaluated(evaluate, state, group)
                        if watch and _is_best(row, watch, larger_is_better, memory):
                            best = state.snapshot()
                        memory.finished = patience is not None and memory.worse >= patience
                    records.append(row)
                    if rounds is not None and watch and state.step in ends:
                        memory.finished = memory.finished or rounds.stops(records.rows, watch)
                        if not memory.finished:
                            show_next_round(display, label, state.step, ends, batches)
                    scalars |= row

                display.update(state.step, scalars)
                stop, due = stop_request.signum or 0, writes and checkpoints is not None and checkpoints.due()
                if group.count > 1:
                    stop, due = map(int, group.largest([stop, due]))
                if stop:
                    save()
                    raise Stopped(_stop_message(state, steps, folder), stop, folder)
                if due:
                    save()

        if state.step > first:
            save()
    if best:
        state.restore(best)
    return Outcome(state, records.rows, memory.best_step, memory.best_value, state.step not in ends)


def _evaluated(evaluate: Evaluate, state: State, group: Group) -> dict[str, float]:
    """Measures of the first process, which all of them need where weights are divided."""
    measures = {}
    if group.first or isinstance(state, Sharded):
        measures = {name: float(value) for name, value in evaluate(state).items()}
    return group.tell(measures)


def _resume(
    state: State, records: Records, checkpoints: Checkpoints | None, identity: str
) -> tuple[LoopState, dict[str, Any]]:
    """Restore state, records and random generators from the newest checkpoint."""
    saved = checkpoints.newest() if checkpoints else None
    if saved is None:
        records.cut(0)
        return LoopState(), {}
    where = checkpoints.folder if checkpoints else None
    if saved.get("identity") != identity:
        raise WonderlandError(
            f"The options or the data of the training in {where} were changed since it began. Start again with --overwrite."
        )
    try:
        if wrong := _MEMORY(saved["memory"]):
            raise ValueError(wrong)
        state.load_state_dict(saved["state"])
        state.check_snapshot(saved["best"])
        records.cut(saved["records"])
        set_random_state(saved["random"])
        return LoopState(**saved["memory"]), saved["best"]
    except (LookupError, TypeError, AttributeError, RuntimeError, ValueError, ArithmeticError) as error:
        if isinstance(error, WonderlandError):
            raise
        raise WonderlandError(
            f"The checkpoint in {where} is not from this training. Start again with --overwrite."
        ) from error


_MEMORY = entries({
    "sums": values(number()), "counted": whole(), "best_value": optional(number()), "best_step": whole(), "worse": whole(),
    "finished": true_or_false,
})  # fmt: skip


def _numbers(returned: Any) -> dict[str, float]:
    """What a step returned, as numbers by name."""
    try:
        return {str(name): float(value) for name, value in returned.items()}
    except (AttributeError, TypeError, ValueError, RuntimeError):
        raise WonderlandError(
            f"A step must return numbers by name, such as {{'loss': 0.3}}, not {type(returned).__name__}."
        ) from None


def _is_best(row: dict[str, float], watch: str, larger_is_better: bool, memory: LoopState) -> bool:
    """Does this evaluation beat all before it? Counts towards patience when it does not."""
    if watch not in row:
        raise WonderlandError(f"There is no {watch!r} among {', '.join(row)}: choose what to watch from these.")
    value = row[watch]
    if not math.isfinite(value):
        raise guard.NonFinite(f"The {watch} became {value} at step {row['step']}. {guard.ADVICE}")
    better = memory.best_value is None or (value > memory.best_value if larger_is_better else value < memory.best_value)
    if better:
        memory.best_value, memory.best_step, memory.worse = value, int(row["step"]), 0
    else:
        memory.worse += 1
    return better


def _stop_message(state: State, steps: int, folder: Path | None) -> str:
    if folder is None:
        return f"Stopped after step {state.step} of {steps}; nothing was saved, since there is no folder."
    return f"Stopped after step {state.step} of {steps}; everything is saved in {folder}."


def stream(batches: Any, first: int, stop: int) -> Generator[Any, None, None]:
    """Batches for steps `first` to `stop - 1`: each depends on its step only, which makes resume exact."""
    if isinstance(batches, BatchStream):
        return batches.stream(first, stop)
    if callable(batches):
        return (batches(number) for number in range(first, stop))
    if isinstance(batches, Sequence) and len(batches):
        return (batches[number % len(batches)] for number in range(first, stop))
    raise WonderlandError(
        "Batches must be a function of the step number, a list, or wonderland.data.Batches, so that a stopped run can be "
        f"resumed exactly; a {type(batches).__name__} cannot be started in the middle."
    )
