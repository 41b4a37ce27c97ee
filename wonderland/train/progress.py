"""Display of progress: a live bar in a terminal, a line every few seconds elsewhere, or nothing."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol


class Progress(Protocol):
    """The interface that the loop calls to display progress."""

    def start(self, label: str, step: int, steps: int, batch_size: int) -> None: ...
    def update(self, step: int, scalars: dict[str, float]) -> None: ...
    def stop(self) -> None: ...


class Silent:
    """Displays nothing."""

    def start(self, label: str, step: int, steps: int, batch_size: int) -> None: ...
    def update(self, step: int, scalars: dict[str, float]) -> None: ...
    def stop(self) -> None: ...


class Bar:
    """A bar with the loss, examples a second and the time left."""

    def __init__(self) -> None:
        self._live: Any = None

    def start(self, label: str, step: int, steps: int, batch_size: int) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as Live

        self._live = Live(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[facts]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            transient=False,
        )
        self._task = self._live.add_task(label, total=steps, completed=step, facts="")
        self._first, self._batch, self._shown, self._began = step, batch_size, 0.0, time.monotonic()
        self._live.start()

    def update(self, step: int, scalars: dict[str, float]) -> None:
        now = time.monotonic()
        if now - self._shown < 0.1:
            return
        self._shown = now
        speed = (step - self._first) * self._batch / max(now - self._began, 1e-9)
        self._live.update(self._task, completed=step, facts=_facts(scalars, speed))

    def stop(self) -> None:
        self._live.stop()


class Lines:
    """A plain line every few seconds, for logs."""

    def __init__(self, every: float = 5.0) -> None:
        self.every = every

    def start(self, label: str, step: int, steps: int, batch_size: int) -> None:
        self._label, self._first, self._steps, self._batch = label, step, steps, batch_size
        self._began = self._shown = time.monotonic()

    def update(self, step: int, scalars: dict[str, float]) -> None:
        now = time.monotonic()
        if now - self._shown < self.every and step < self._steps:
            return
        self._shown = now
        pace = (now - self._began) / max(step - self._first, 1)
        facts = _facts(scalars, self._batch / max(pace, 1e-9))
        print(
            f"{self._label} {step}/{self._steps} {facts}, {(self._steps - step) * pace:.0f} s left",
            file=sys.stderr,
            flush=True,
        )

    def stop(self) -> None: ...


class Watching:
    """Lines about long work after training, every few seconds."""

    def __init__(self, every: float = 3.0) -> None:
        self.every = every

    def __call__(self, label: str) -> Callable[[int, int], None]:
        """A function to call with what is done, and of how much."""
        shown = time.monotonic()

        def update(done: int, whole: int) -> None:
            nonlocal shown
            if time.monotonic() - shown >= self.every:
                shown = time.monotonic()
                print(f"{label}: {done:,} of {whole:,}", file=sys.stderr, flush=True)

        return update


@contextmanager
def show_progress(progress: Progress, label: str, first: int, steps: int, batches: Any) -> Iterator[None]:
    """Show progress from here to the end of the block, however it ends."""
    progress.start(label, first, steps, getattr(batches, "size", 1))
    try:
        yield
    finally:
        progress.stop()


def show_next_round(progress: Progress, label: str, step: int, ends: Sequence[int], batches: Any) -> None:
    """Show the progress of the round that begins after this step."""
    progress.stop()
    progress.start(f"{label} goes on", step, ends[ends.index(step) + 1], getattr(batches, "size", 1))


def default_progress(show: bool) -> Progress:
    """A bar in a terminal, lines elsewhere; `Silent` if not `show`."""
    if not show:
        return Silent()
    return Bar() if sys.stdout.isatty() else Lines()


def _facts(scalars: dict[str, float], speed: float) -> str:
    shown = [f"{name} {value:.4g}" for name, value in scalars.items() if name in ("loss", "validation/loss")]
    return ", ".join([*shown, f"{speed:,.0f} examples/s"])
