"""launch: a command in several processes on this machine, begun again from its checkpoint if one of them dies."""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from wonderland.train.parallel.group import PARENT, STORE

FINAL = (0, 2, 128 + signal.SIGINT, 128 + signal.SIGTERM)  # done, bad input, stopped: nothing to begin again
GRACE = 30.0  # seconds for a process to write its checkpoint


def is_launched() -> bool:
    """Whether this process is one of several that `launch` or torchrun started."""
    return os.environ.get("WORLD_SIZE", "1").isdigit() and int(os.environ.get("WORLD_SIZE", "1")) > 1


def launch(
    words: Sequence[str], processes: int, *, restarts: int = 3, say: Callable[[str], None] = lambda text: None
) -> int:
    """Run a command in several processes; returns the exit code of the first that says something final.

    Each process finds its rank, their number, and a file to meet at in its environment (`group.joined`). If one dies, all are
    ended and begun again, at most `restarts` times; the command has to go on from its checkpoint by itself.
    """
    attempt, stops = 0, _Stops()
    with stops:
        while True:
            code = _once(words, processes, stops, attempt)
            if code in FINAL or stops.signum is not None or attempt == restarts:
                return code if code >= 0 else 128 - code
            attempt += 1
            reason = signal.Signals(-code).name if code < 0 else f"exit code {code}"
            say(
                f"A process died ({reason}): all {processes} begin again from the last checkpoint, {attempt} of {restarts} times."
            )


def _once(words: Sequence[str], processes: int, stops: "_Stops", attempt: int) -> int:
    with tempfile.TemporaryDirectory(prefix="wonderland-") as folder:
        hold, pass_on = os.pipe()
        children: list[subprocess.Popen[bytes]] = []
        try:
            for rank in range(processes):
                own = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(processes),
                       "LOCAL_WORLD_SIZE": str(processes), STORE: str(Path(folder) / "store"), PARENT: str(hold),
                       "TORCHELASTIC_RESTART_COUNT": str(attempt)}  # fmt: skip
                if sys.platform == "linux":
                    own["GLOO_SOCKET_IFNAME"] = os.environ.get("GLOO_SOCKET_IFNAME", "lo")
                # A session of its own: Ctrl-C reaches the launcher only, which passes it on once.
                children.append(
                    subprocess.Popen(words, env={**os.environ, **own}, pass_fds=[hold], start_new_session=True)
                )
            stops.children = children
            while True:
                codes = [child.poll() for child in children]
                over = [code for code in codes if code is not None]
                if len(over) == processes and not any(over):
                    return 0
                wrong = [code for code in over if code]
                if wrong:
                    return _chosen(_end(children, patient=stops.signum is not None), wrong)
                time.sleep(0.05)
        finally:
            _end(children, patient=False)
            os.close(hold)
            os.close(pass_on)


def _chosen(codes: list[int], seen: list[int]) -> int:
    """A final code if there is one; else that of the process that was killed, rather than of those that lost it."""
    for code in (*seen, *codes):
        if code in FINAL and code:
            return code
    return min(seen)


def _end(children: list[subprocess.Popen[bytes]], *, patient: bool) -> list[int]:
    """End what still runs; returns the exit codes."""
    deadline = time.monotonic() + (GRACE if patient else 1.0)
    for child in children:
        while child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
    for child in children:
        if child.poll() is None:
            child.kill()
    return [child.wait() for child in children]


class _Stops:
    """Passes SIGINT and SIGTERM on to the processes, which finish their step and save."""

    def __init__(self) -> None:
        self.signum: int | None = None
        self.children: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> None:
        self._before = {number: signal.signal(number, self._record) for number in (signal.SIGINT, signal.SIGTERM)}

    def _record(self, signum: int, frame: object) -> None:
        self.signum = signum
        for child in self.children:
            if child.poll() is None:
                child.send_signal(signum)

    def __exit__(self, *details: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
