"""Batching: rows of requests that wait at the same time are predicted together."""

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from wonderland.core import WonderlandError

LONGEST_PAUSE = 0.004  # seconds
PAUSE = 0.3  # of the time of the last batch
Rows = list[dict[str, Any]]


class Overloaded(Exception):
    """Too much is waiting already."""


class Batcher:
    """Predicts in one thread. While a batch is computed, requests wait; the next batch takes as many of them as fit.

    A request that comes alone is predicted at once. After a batch of several, the next one waits for a fraction of the time that it
    took, since those who got an answer are likely to ask again: fewer, larger batches. `compute(rows, level)` gives one answer for
    each row; where it fails for a batch, each request is tried alone, so that a bad one spoils no other.
    """

    def __init__(
        self,
        compute: Callable[[Rows, float | None], list[Any]],
        pool: ThreadPoolExecutor,
        *,
        rows: int = 256,
        waiting: int = 4096,
        on_batch: Callable[[int, int], None] = lambda requests, rows: None,
    ):
        self.compute, self.pool, self.rows, self.most_waiting, self.on_batch = compute, pool, rows, waiting, on_batch
        self.queue: deque[tuple[Rows, float | None, asyncio.Future]] = deque()
        self.waiting = 0
        self.running: asyncio.Task | None = None

    async def __call__(self, rows: Rows, level: float | None) -> list[Any]:
        """The answers for the rows of one request."""
        if self.waiting + len(rows) > self.most_waiting:
            raise Overloaded
        future = asyncio.get_running_loop().create_future()
        self.queue.append((rows, level, future))
        self.waiting += len(rows)
        if self.running is None:
            self.running = asyncio.create_task(self._run())
        return await future

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        try:
            while self.queue:
                batch = self._next()
                if not batch:
                    continue
                self.on_batch(len(batch), sum(len(rows) for rows, *_ in batch))
                start = loop.time()
                results = await loop.run_in_executor(self.pool, self._answers, [(r, level) for r, level, _ in batch])
                for (*_, future), result in zip(batch, results, strict=True):
                    if future.done():  # the client has left
                        continue
                    if isinstance(result, BaseException):
                        future.set_exception(result)
                    else:
                        future.set_result(result)
                if len(batch) > 1:
                    await asyncio.sleep(min(LONGEST_PAUSE, PAUSE * (loop.time() - start)))
        finally:
            self.running = None

    def _next(self) -> list[tuple[Rows, float | None, asyncio.Future]]:
        """The requests at the front of the queue that share a level and fit into one batch; those given up are left out."""
        batch: list[tuple[Rows, float | None, asyncio.Future]] = []
        count = 0
        while self.queue:
            rows, level, future = self.queue[0]
            if batch and (level != batch[0][1] or count + len(rows) > self.rows):
                break
            self.queue.popleft()
            self.waiting -= len(rows)
            if not future.done():
                batch.append((rows, level, future))
                count += len(rows)
        return batch

    def _answers(self, requests: list[tuple[Rows, float | None]]) -> list[Any]:
        """Answers or the error of each request; runs in the thread."""
        try:
            answers = self.compute([row for rows, _ in requests for row in rows], requests[0][1])
            split, start = [], 0
            for rows, _ in requests:
                split.append(answers[start : start + len(rows)])
                start += len(rows)
            return split
        except Exception as error:
            if len(requests) == 1:
                return [error]
            return [answer for request in requests for answer in self._answers([request])]


def refused(error: BaseException) -> str | None:
    """The sentence for a client whose input was refused; None for a fault of ours."""
    return str(error) if isinstance(error, WonderlandError) else None
