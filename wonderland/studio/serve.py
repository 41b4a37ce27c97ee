"""`studio`: the page of the runs in a folder, on this machine."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from wonderland.core import WonderlandError, need
from wonderland.ship.serving import process
from wonderland.ship.serving.limits import Limits, is_loopback
from wonderland.ship.serving.serve import LOCAL


def studio(
    root: str | Path = "runs", *, host: str = "127.0.0.1", port: int = 8765, say: Callable[[str], Any] = print
) -> None:
    """Show the runs of a folder on a local page until SIGTERM or SIGINT."""
    need("fastapi", extra="serve", why="for the studio")
    need("uvicorn", extra="serve", why="for the studio")
    if not is_loopback(host):
        raise WonderlandError(
            f"The studio is for this machine only, and {host} is reached by others. From another one, use a tunnel: "
            f"ssh -L {port}:127.0.0.1:{port} THIS-MACHINE"
        )
    from wonderland.ship.serving.app import address
    from wonderland.studio.app import guarded

    limits = Limits(connections=256)
    app = guarded(root, {*LOCAL, host.lower().strip("[]")}, limits)
    sock = process.listen(host, port)
    where = address(host, sock.getsockname()[1])
    process.run(app, sock, limits.connections, lambda: say(f"The studio of {root} is at {where} (stop: Ctrl-C)"))
