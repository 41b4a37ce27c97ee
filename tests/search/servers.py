"""A PostgreSQL server of Debian for a test: in a folder of its own, as a user without privileges."""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def binaries() -> Path:
    """The folder of PostgreSQL's programs; the test is skipped where there is none."""
    beside = [Path(path).resolve().parent for name in ("initdb",) if (path := shutil.which(name))]
    for folder in (*sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True), *beside):
        if all((folder / name).exists() for name in ("initdb", "postgres", "pg_isready")):
            return folder
    pytest.skip("PostgreSQL is not installed (Debian: apt install postgresql)")


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """Started, killed and started again on the same folder and port."""

    def __init__(self, folder: Path, listen: str):
        self.folder, self.listen, self.port = folder, listen, free_port()
        self.as_user = {"user": "nobody", "group": pwd.getpwnam("nobody").pw_gid} if os.getuid() == 0 else {}
        self.environment = {"PATH": os.environ["PATH"], "LC_ALL": "C", "HOME": str(folder)}
        made = subprocess.run(
            [binaries() / "initdb", "-D", folder / "data", "-U", "ann", "-A", "trust", "--no-sync"],
            capture_output=True, text=True, env=self.environment, cwd=folder, check=False, **self.as_user,
        )  # fmt: skip
        assert not made.returncode, made.stderr  # a server that is installed has to run
        with (folder / "data" / "pg_hba.conf").open("a") as file:
            file.write("host all all 0.0.0.0/0 trust\n")
        self.process: subprocess.Popen | None = None

    def url(self, host: str = "127.0.0.1") -> str:
        return f"postgresql://ann@{host}:{self.port}/postgres"

    def _started(self, log) -> subprocess.Popen:
        return subprocess.Popen(
            [binaries() / "postgres", "-D", self.folder / "data", "-p", str(self.port), "-h", self.listen,
             "-k", self.folder, "-c", "max_connections=50"],
            stdout=subprocess.DEVNULL, stderr=log, env=self.environment, cwd=self.folder, **self.as_user,
        )  # fmt: skip

    def start(self) -> None:
        with (self.folder / "log.txt").open("ab") as log:
            self.process = self._started(log)
        for _ in range(300):
            ready = subprocess.run(
                [binaries() / "pg_isready", "-h", self.folder, "-p", str(self.port)], check=False, capture_output=True
            )
            if ready.returncode == 0:
                return
            time.sleep(0.1)
        pytest.fail((self.folder / "log.txt").read_text())

    def kill(self) -> None:
        """End it at once, as a crash would: what was committed is on disk."""
        assert self.process is not None
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()


@contextmanager
def postgresql(listen: str = "127.0.0.1") -> Iterator[Server]:
    folder = Path(tempfile.mkdtemp(prefix="wonderland-pg-"))
    try:
        if os.getuid() == 0:
            shutil.chown(folder, "nobody", pwd.getpwnam("nobody").pw_gid)
        server = Server(folder, listen)
        server.start()
        yield server
        server.kill()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
