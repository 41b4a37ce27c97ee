"""Stop signals: after Ctrl-C or SIGTERM the step finishes and a checkpoint is written."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class Stopped(KeyboardInterrupt):
    """Training was stopped by a signal, after saving a checkpoint."""

    def __init__(self, message: str, signum: int, folder: Path | None):
        super().__init__(message)
        self.signum = signum
        self.folder = folder


class StopRequest:
    """The signal that asked this process to stop; None so far."""

    signum: int | None = None


@contextmanager
def stop_requests() -> Iterator[StopRequest]:
    """Record SIGINT and SIGTERM instead of terminating; a second signal raises KeyboardInterrupt."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return

    def record(signum: int, frame: object) -> None:
        if request.signum is not None:
            raise KeyboardInterrupt
        request.signum = signum

    handlers = {number: signal.signal(number, record) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
