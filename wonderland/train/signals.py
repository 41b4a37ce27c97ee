"""Being asked to stop: Ctrl-C and SIGTERM let the step finish and the checkpoint be written."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Stopped(KeyboardInterrupt):
    """Training was asked to stop and has saved where it stands."""

    def __init__(self, message: str, signum: int, folder: Path | None):
        super().__init__(message)
        self.signum = signum
        self.folder = folder


class Request:
    """Whether, and by which signal, this process was asked to stop."""

    signum: int | None = None


@contextmanager
def stop_requests() -> Iterator[Request]:
    """Collect SIGINT and SIGTERM instead of dying by them; a second one stops at once."""
    request = Request()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def note(signum: int, frame: object) -> None:
        if request.signum is not None:
            raise KeyboardInterrupt
        request.signum = signum

    before = {number: signal.signal(number, note) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
