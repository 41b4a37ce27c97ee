"""A child process that runs many cases, each with its time and memory, and prints a line of JSON before and after each.

`python -m tests.fuzz.worker HOME` reads case numbers from standard input. The parent (`tests/fuzz/cases.py`) is the watchdog.
"""

import contextlib
import gc
import io
import json
import os
import random
import resource
import shutil
import sys
import time
import traceback
from pathlib import Path
from typing import Any

ADDRESS_SPACE = 12 << 30


def resident(name: str) -> float:
    """A line of /proc/self/status in megabytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name):
            return int(line.split()[1]) / 1024
    return 0.0


def reset_peak() -> None:
    """Make the peak of resident memory what it is now."""
    Path("/proc/self/clear_refs").write_text("5")


def run_case(number: int, home: Path) -> dict[str, Any]:
    """One case: what was mutated, what was called, and how it ended."""
    from tests.fuzz import cases

    draw = random.Random(number)
    place = home / f"case-{os.getpid()}"
    shutil.rmtree(place, ignore_errors=True)
    with contextlib.redirect_stdout(io.StringIO()):
        words, call = cases.prepare(draw, home, place)
    print(json.dumps({"case": number, "begins": words}), flush=True)
    gc.collect()
    gc.freeze()  # what imports made is never garbage: the next collection is a hundred times shorter
    reset_peak()
    before, began, cpu = resident("VmRSS"), time.monotonic(), time.process_time()
    outcome, detail = "accepted", ""
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            detail = call() or ""
    except BaseException as error:
        from wonderland.core import WonderlandError

        refused = isinstance(error, WonderlandError) or (isinstance(error, SystemExit) and error.code == 2)
        outcome = "refused" if refused else "traceback"
        detail = str(error) if refused else "".join(traceback.format_exception(error)[-6:])
    made = {"case": number, "words": words, "outcome": outcome, "detail": detail,
            "cpu": time.process_time() - cpu, "wall": time.monotonic() - began, "mb": resident("VmHWM") - before}  # fmt: skip
    shown = out.getvalue() + err.getvalue() + (detail if outcome == "refused" else "")
    if outcome != "traceback" and any(not (c.isprintable() or c in "\n\t") for c in shown):
        made["unprintable"] = True
    return made


def main() -> None:
    home = Path(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    sys.setrecursionlimit(1000)
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        print(json.dumps(run_case(int(line), home)), flush=True)
    shutil.rmtree(home / f"case-{os.getpid()}", ignore_errors=True)


if __name__ == "__main__":
    main()
