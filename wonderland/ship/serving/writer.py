"""Writer: texts of a language model for requests, one at a time, given out as they come."""

import asyncio
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from wonderland.ship.serving.batching import Overloaded
from wonderland.ship.serving.limits import Limits
from wonderland.ship.serving.metrics import Metrics

FINISHED = {"count": "length"}


@dataclass
class Text:
    """A text while it is generated: how many tokens it has, and why it ended ("stop" or "length")."""

    tokens: int = 0
    finish: str = "stop"
    pieces: list[str] = field(default_factory=list)


class TextWriter:
    """Generates in one thread. Requests wait for their turn; a client that leaves ends its text."""

    def __init__(self, limits: Limits, metrics: Metrics):
        self.pool = ThreadPoolExecutor(1, "generate")
        self.limits, self.metrics, self.waiting = limits, metrics, 0

    async def write(self, ability: Any, prompt: str, count: int, text: Text, **options: Any) -> AsyncIterator[str]:
        """The pieces of a text as they come; what is known of it is kept in `text`."""
        if self.waiting >= self.limits.generating:
            raise Overloaded
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[Any] = asyncio.Queue()
        left = threading.Event()

        def generate() -> None:
            try:
                if left.is_set():
                    return
                for piece, ended in ability.steps(prompt, count, **options):
                    text.tokens += 1
                    text.finish = FINISHED.get(ended, "stop")
                    if piece:
                        loop.call_soon_threadsafe(queue.put_nowait, piece)
                    if left.is_set():
                        return
                loop.call_soon_threadsafe(queue.put_nowait, None)
            except Exception as error:
                loop.call_soon_threadsafe(queue.put_nowait, error)

        self.waiting += 1
        work = loop.run_in_executor(self.pool, generate)
        try:
            while True:
                async with asyncio.timeout(self.limits.answer):
                    piece = await queue.get()
                if piece is None:
                    return
                if isinstance(piece, Exception):
                    raise piece
                text.pieces.append(piece)
                yield piece
        finally:
            left.set()
            self.waiting -= 1
            self.metrics.add("tokens", text.tokens)
            work.add_done_callback(lambda done: done.cancelled() or done.exception())
