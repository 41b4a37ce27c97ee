"""Kills between any two file operations of a fit, over all kinds of run; the run is continued and has to end with the same bytes.

`python -m tests.fuzz.kills HOME KILLS SEED [NAME ...]` prints a line of JSON for each run that was killed.

A child process counts the operations that leave something on the disk: opening a file to write or append, fsync, rename, unlink, truncate,
mkdir. At the chosen one it ends without a word, as a killed process does: what it had not handed to the system is lost. In the way "torn", the
file that is being written keeps half of its content, as after a loss of power. In the other ways the operation fails: disk full, read-only,
quota, a fault of the disk; then the fit has to end in a sentence.
"""

import errno
import json
import os
import random
import shutil
import sys
from pathlib import Path
from typing import Any

CLOCKS = ("times.jsonl", ".lock")  # what may differ
KILLED = 77
WAYS = ("kill", "torn", "ENOSPC", "EROFS", "EDQUOT", "EIO")


def intercept(place: Path, at: int, way: str) -> dict[str, int]:
    """Count the file operations below a folder. Number `at` (never for -1) ends the process, or fails with the error `way`."""
    seen = {"count": 0}
    root = os.path.realpath(place)

    def operation(path: Any) -> None:
        name = path if isinstance(path, str) else os.fsdecode(path) if isinstance(path, bytes | os.PathLike) else ""
        if not os.path.realpath(name).startswith(root):
            return
        if seen["count"] == at:
            seen["count"] += 1
            if hasattr(errno, way):
                raise OSError(getattr(errno, way), os.strerror(getattr(errno, way)), name)
            if way == "torn" and name.endswith(".part") and os.path.isfile(name):
                os.truncate(name, os.path.getsize(name) // 2)
            os._exit(KILLED)
        seen["count"] += 1

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        if (
            event == "open" and isinstance(arguments[2], int) and arguments[2] & (os.O_WRONLY | os.O_RDWR)
        ) or event in ("os.rename", "os.remove", "os.mkdir", "os.truncate"):
            operation(arguments[0])

    plain = os.fsync

    def fsync(handle: int) -> None:
        operation(os.readlink(f"/proc/self/fd/{handle}"))
        plain(handle)

    os.fsync = fsync
    sys.addaudithook(hook)
    return seen


def fork(work: Any) -> tuple[int, str]:
    """Run in a child process; its exit code and what it says in the end."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        code = 1
        try:
            said = work()
            os.write(writer, json.dumps(said).encode())
            code = 0
        except BaseException as error:
            os.write(writer, json.dumps(repr(error)[:2000]).encode())
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        said = file.read().decode()
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), said


def digests(folder: Path) -> dict[str, str]:
    from tests.kinds.battery import digest

    return {path.name: digest(path) for path in folder.iterdir() if path.is_file() and path.name not in CLOCKS}


def fit(make: tuple[Path, dict[str, Any]], out: Path, at: int = -1, way: str = "kill") -> int:
    """Fit, or continue a fit that has begun; returns the number of file operations."""
    import wonderland
    from tests.fuzz.subjects import narrow
    from wonderland.train.checkpoint import Checkpoints

    Checkpoints.due = lambda self: True
    source, options = make
    seen = intercept(out, at, way)
    if (out / "config.json").exists():
        wonderland.fit(resume=out)
    else:
        with narrow():
            wonderland.fit(source, out=out, **options)
    return seen["count"]


def kills(name: str, home: Path, many: int, seed: int) -> list[dict[str, Any]]:
    """Kill runs of one kind at places drawn by the seed, each place at most once; what did not end as it should."""
    from tests.fuzz.subjects import RUNS, fit_options

    prepare, options = RUNS[name][0], fit_options(name)
    place = home / name
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    made = prepare(place)[0], options
    from wonderland.kinds import KINDS
    from wonderland.road import fitting

    assert fitting
    assert KINDS  # imported once, before the process is divided
    code, said = fork(lambda: fit(made, place / "whole"))
    assert code == 0, said
    expected, count = digests(place / "whole"), int(said)
    draw = random.Random(f"{seed}{name}")
    cases = [(at, way) for at in range(count) for way in WAYS]
    draw.shuffle(cases)
    found = []
    for at, way in cases[:many]:
        out = place / "killed"
        shutil.rmtree(out, ignore_errors=True)
        first, said = fork(lambda out=out, at=at, way=way: fit(made, out, at, way))
        fault, then, wrong = hasattr(errno, way), "", []
        if first != KILLED and not fault:
            wrong = ["it was not killed"]
        elif (
            fault and first and "WonderlandError" not in said
        ):  # what cannot be removed at the end of a save is no fault
            wrong = ["it did not end in a sentence"]
        else:
            code, then = fork(lambda out=out: fit(made, out))
            ended = {} if code else digests(out)
            wrong = sorted(file for file in ended.keys() | expected.keys() if ended.get(file) != expected.get(file))
        found.append(
            {
                "name": name,
                "at": at,
                "of": count,
                "way": way,
                "wrong": wrong,
                "said": (said + then)[:1500] if wrong else "",
            }
        )
    return found


def main() -> None:
    home, many, seed, *names = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:]
    import torch

    from tests.fuzz.subjects import RUNS

    torch.set_num_threads(1)
    for name in names or RUNS:
        for case in kills(name, home, many, seed):
            print(json.dumps(case), flush=True)


if __name__ == "__main__":
    main()
