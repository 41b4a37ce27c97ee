"""`serve`: runs over HTTP, from the command line and from Python."""

import os
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from wonderland.core import WonderlandError, need
from wonderland.ship.predictor import Predictor
from wonderland.ship.run import load
from wonderland.ship.serving import process
from wonderland.ship.serving.limits import Limits, is_loopback, read_keys

LOCAL = ("localhost", "127.0.0.1", "::1")


def load_predictors(runs: Sequence[Any]) -> list[Predictor]:
    """Runs, or folders of runs, as predictors; a name that does not fit into an address is changed."""
    loaded = [run if hasattr(run, "predict") else load(Path(run)) for run in runs]
    if not loaded:
        raise WonderlandError("There is no run to serve: name at least one run folder.")
    return [Predictor(run, address_name(run.folder.resolve().name)) for run in loaded]


def address_name(name: str) -> str:
    """A name that can be part of an address.

    >>> address_name("my run/2"), address_name("näh")
    ('my-run-2', 'n-h')
    """
    return "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in name)[:100] or "run"


def serve(
    runs: Sequence[Any],
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    key_file: str | Path | None = None,
    allow_hosts: Collection[str] = (),
    workers: int = 1,
    limits: Limits | None = None,
    say: Any = print,
) -> int:
    """Serve runs over HTTP until SIGTERM or SIGINT; returns the exit code.

    `runs` are folders or runs. On another address than this machine's own a key file is needed. With several workers, each
    process loads the runs.
    """
    need("fastapi", extra="serve", why="to serve runs")
    need("uvicorn", extra="serve", why="to serve runs")
    limits = limits or Limits()
    if not 1 <= workers <= process.MOST_WORKERS:
        raise WonderlandError(f"The number of workers is from 1 to {process.MOST_WORKERS}, not {workers}.")
    if not is_loopback(host) and key_file is None:
        raise WonderlandError(f"Whoever reaches {host} could use the server: give a key with --key-file.")
    keys = None if key_file is None else read_keys(key_file)
    names = (
        {*LOCAL, host.lower().strip("[]"), *map(str.lower, allow_hosts)} if is_loopback(host) or allow_hosts else None
    )
    from wonderland.ship.serving.app import address, guarded, routes
    from wonderland.ship.serving.metrics import Metrics

    named = [address_name(Path(getattr(run, "folder", run)).resolve().name) for run in runs]
    metrics = Metrics(routes(named), workers)
    sock = process.listen(host, port, shared=workers > 1)
    port = sock.getsockname()[1]
    where = address(host, port)

    def work(number: int, own: Any = None) -> None:
        import torch

        torch.set_num_threads(max(1, (os.cpu_count() or 1) // workers))
        metrics.worker = number
        app = guarded(load_predictors(runs), limits, metrics, keys=keys, names=names)
        listening = own or process.listen(host, port, shared=True)
        ready = (
            (lambda: say(f"Serving {', '.join(named)} at {where} (stop: Ctrl-C)")) if number == 0 else (lambda: None)
        )
        process.run(app, listening, limits.connections, ready)

    if workers == 1:
        work(0, sock)
        return 0
    if not hasattr(os, "fork"):
        raise WonderlandError("This system has no fork: serve with one worker.")
    try:
        return process.run_workers(workers, work, say=say)
    finally:
        sock.close()
