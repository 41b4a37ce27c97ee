"""The loop of a worker: claim a job, run it, report, until the study is done."""

import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any, TypeVar

from wonderland.core import WonderlandError
from wonderland.search.database import LostDatabase
from wonderland.search.study import Job, Result, Study

PAUSE = 0.1  # seconds between two looks at the journal while other workers have all the jobs
T = TypeVar("T")
PATIENCE = 120.0  # seconds in which a database that went away may come back


def work(
    study: Study,
    objective: Callable[[Job], Result],
    *,
    deadline: float | None = None,
    on_progress: Callable[[Study], Any] | None = None,
) -> None:
    """Run jobs of a study until none is left, or until `deadline` (of `time.monotonic`), after which no new one is begun.

    `objective(job)` brings a trial to the end of a rung. What it raises is written down as the reason why the trial failed; a full
    disk stops the worker, and its job is left for the next one. `on_progress` is called after each change.
    """
    with ExitStack() as stack:
        worker = _insisting(lambda: stack.enter_context(study.worker()))
        while deadline is None or time.monotonic() < deadline:
            job = _insisting(lambda: study.claim(worker))
            if on_progress:
                on_progress(study)
            if job is None:
                if study.finished:
                    return
                time.sleep(PAUSE if study.journal.one_place else 5 * PAUSE)
                continue
            began = time.monotonic()
            try:
                result = objective(job)
            except Exception as error:
                if isinstance(error, OSError | LostDatabase) or isinstance(error.__cause__, OSError):
                    raise
                text = str(error) if isinstance(error, WonderlandError) else f"{type(error).__name__}: {error}"
                _insisting(partial(study.fail, worker, job, text, time.monotonic() - began))
            else:
                _insisting(partial(study.report, worker, job, result))
            if on_progress:
                on_progress(study)


def _insisting(call: Callable[[], T]) -> T:
    """What a call returns; while the database does not answer it is tried again, for a while."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            return call()
        except LostDatabase:
            if time.monotonic() > end:
                raise
            time.sleep(2 * PAUSE)
