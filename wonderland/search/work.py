"""The loop of a worker: claim a job, run it, report, until the study is done."""

import time
from collections.abc import Callable
from typing import Any

from wonderland.core import WonderlandError
from wonderland.search.study import Job, Result, Study

PAUSE = 0.1  # seconds between two looks at the journal while other workers have all the jobs


def work(
    study: Study,
    objective: Callable[[Job], Result],
    *,
    deadline: float | None = None,
    told: Callable[[Study], Any] | None = None,
) -> None:
    """Run jobs of a study until none is left, or until `deadline` (of `time.monotonic`), after which no new one is begun.

    `objective(job)` brings a trial to the end of a rung. What it raises is written down as the reason why the trial failed; a full
    disk stops the worker, and its job is left for the next one. `told` is called after each change.
    """
    with study.worker() as worker:
        while deadline is None or time.monotonic() < deadline:
            job = study.claim(worker)
            if told:
                told(study)
            if job is None:
                if study.finished:
                    return
                time.sleep(PAUSE)
                continue
            began = time.monotonic()
            try:
                result = objective(job)
            except Exception as error:
                if isinstance(error, OSError) or isinstance(error.__cause__, OSError):
                    raise
                text = str(error) if isinstance(error, WonderlandError) else f"{type(error).__name__}: {error}"
                study.fail(worker, job, text, time.monotonic() - began)
            else:
                study.report(worker, job, result)
            if told:
                told(study)
