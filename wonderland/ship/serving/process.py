"""The processes of a server: one that listens, or several workers under a parent that starts and stops them."""

import asyncio
import gc
import logging
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

from wonderland.core import WonderlandError, need

STOPS = (signal.SIGTERM, signal.SIGINT)
PATIENCE = 90  # seconds that a request may take to finish after a stop was asked for
MOST_WORKERS = 64


def listen(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """A bound socket; `shared` ones may be bound by several processes, between which the system divides connections."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        sock.bind((host, port))
    except (OSError, OverflowError) as error:
        sock.close()
        reason = getattr(error, "strerror", None) or str(error)
        raise WonderlandError(
            f"Cannot listen on {host}, port {port} ({reason}). Choose another with --port."
        ) from error
    sock.set_inheritable(False)
    return sock


def run(app: Any, sock: socket.socket, connections: int, ready: Callable[[], None] = lambda: None) -> None:
    """Serve until SIGTERM or SIGINT, then finish every request that was begun."""
    uvicorn = need("uvicorn", extra="serve", why="to serve runs")
    need("httptools", extra="serve", why="to serve runs")
    from wonderland.ship.serving.protocol import Protocol

    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    config = uvicorn.Config(
        app, http=Protocol, ws="none", lifespan="off", log_config=None, access_log=False, server_header=False,
        proxy_headers=False, limit_concurrency=connections, timeout_keep_alive=30,
        timeout_graceful_shutdown=PATIENCE, backlog=2048, loop=_loop(),
    )  # fmt: skip

    class Server(uvicorn.Server):
        @contextmanager
        def capture_signals(self) -> Any:
            loop = asyncio.get_running_loop()
            for number in STOPS:
                loop.add_signal_handler(number, self.handle_exit, number, None)
            yield
            for number in STOPS:
                loop.remove_signal_handler(number)

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            gc.collect()
            gc.freeze()  # models and libraries stay: looking through them again and again would keep requests waiting
            ready()

    Server(config).run(sockets=[sock])


def _loop() -> str:
    try:
        import uvloop  # noqa: F401  # pyright: ignore
    except ImportError:
        return "asyncio"
    return "uvloop"


def run_workers(count: int, work: Callable[[int], None], *, say: Callable[[str], None]) -> int:
    """Fork `count` processes that run `work(number)`, start those again that fail, and stop all when asked to."""
    stopping, running, failures = False, {}, []

    def start(number: int) -> None:
        # A stop that comes meanwhile waits, so that no process is missed and none has the handler of its parent.
        signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
        pid = os.fork()
        if pid:
            running[pid] = number
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
            return
        for stop in STOPS:
            signal.signal(stop, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
        code = 1
        try:
            work(number)
            code = 0
        except WonderlandError as error:
            print(f"wonderland: {error}", file=sys.stderr)
            code = 2
        except Exception:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code)

    def stop(number: int, frame: Any) -> None:
        nonlocal stopping
        stopping = True
        for pid in list(running):
            os.kill(pid, signal.SIGTERM)

    before = {number: signal.signal(number, stop) for number in STOPS}
    try:
        for number in range(count):
            start(number)
        while running:
            try:
                pid, status = os.wait()
            except InterruptedError:
                continue
            number = running.pop(pid, None)
            if number is None or stopping:
                continue
            code = os.waitstatus_to_exitcode(status)
            failures = [moment for moment in failures if time.monotonic() - moment < 60] + [time.monotonic()]
            if code == 2 or len(failures) > 5:
                stop(0, None)
                say("A worker cannot start: the server stops.")
                return 2
            say(f"Worker {number} ended with code {code} and is started again.")
            start(number)
    finally:
        for pid in list(running):
            os.waitpid(pid, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
    return 0
