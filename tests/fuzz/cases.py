"""Cases: a subject, a mutation and what is called on it, chosen by the number of the case; and their children."""

import json
import os
import random
import select
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.fuzz import mutate, subjects

SECONDS, MEGABYTES, WATCHDOG = 1.0, 200.0, 30.0
ROOT = Path(__file__).parents[2]
RUN_FILES = ("config.json", "config.json", "preprocess.json", "preprocess.json", "trust.json", "trust.json",
             "model.safetensors", "preprocess.safetensors", "metrics.jsonl", "times.jsonl")  # fmt: skip
ACTIONS = ("predict", "predict", "evaluate", "shell", "resume", "resume", "report")


def prepare(draw: random.Random, home: Path, place: Path) -> tuple[str, Callable[[], Any]]:
    """A mutated copy of a subject at `place`, in words, and the call to try on it."""
    name = draw.choice(sorted(subjects.RUNS))
    return prepare_run(subjects.make_run(name, home), draw, place)


def prepare_run(subject: subjects.Subject, draw: random.Random, place: Path) -> tuple[str, Callable[[], Any]]:
    """A mutated run folder."""
    shutil.copytree(subject.folder, place)
    action = draw.choice(ACTIONS)
    checkpoints = [f"checkpoint/{path.name}" for path in sorted((place / "checkpoint").glob("*.safetensors"))]
    names = [draw.choice([*RUN_FILES, *(checkpoints * 2 if action == "resume" else [])])]
    if action == "resume" and draw.random() < 0.7:  # training is taken up again from the newest checkpoint
        (place / "model.safetensors").unlink()
        (place / "trust.json").unlink()
        names = [draw.choice(checkpoints[-1:] * 3 + ["config.json", "metrics.jsonl", "preprocess.json"])]
    if action == "report":
        (place / "report.html").unlink()
    if draw.random() < 0.15:
        names.append(draw.choice([name for name in RUN_FILES if name not in names and (place / name).exists()]))
    words = [mutate.mutate_file(place / name, draw) for name in names]
    signed = draw.random() < 0.8
    if signed:
        mutate.sign_again(place)
    said = f"{subject.name}, {action}{', signed again' if signed else ''}: {' | '.join(words)}"
    return said, lambda: call(action, place, subject.new)


def call(action: str, folder: Path, new: str) -> Any:
    """What a user does with a run folder."""
    import wonderland
    from wonderland.cli.main import main

    if action in ("resume", "report"):
        return repr(wonderland.fit(resume=folder))
    if action == "shell":
        code = main(["predict", str(folder), new, "-o", str(folder / "predictions.csv")])
        if code == 2:
            raise SystemExit(2)
        return str(code)
    run = wonderland.load(folder)
    said = repr(run) + run._repr_html_() + "".join(run.findings)
    return said and str(len(run.predict(new) if action == "predict" else run.evaluate(new)))


def warm_up(home: Path) -> None:
    """Import and build everything that an honest use needs, so that cases measure themselves alone."""
    for name in sorted(subjects.RUNS):
        subject = subjects.make_run(name, home)
        for action in ("predict", "evaluate"):
            call(action, subject.folder, subject.new)


def run_all(numbers: Iterable[int], home: Path, report: Callable[[dict[str, Any]], None]) -> None:
    """Run cases in child processes; a child that dies or takes too long is replaced, and its case reported."""
    pending = list(numbers)
    while pending:
        pending = _one_child(pending, home, report)


def _one_child(numbers: list[int], home: Path, report: Callable[[dict[str, Any]], None]) -> list[int]:
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "ignore"}
    child = subprocess.Popen(
        [sys.executable, "-m", "tests.fuzz.worker", str(home)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, cwd=ROOT, env=environment, text=True,
    )  # fmt: skip
    assert child.stdin
    assert child.stdout
    assert child.stderr
    begun: dict[str, Any] = {}
    try:
        if _line(child, 300) is None:
            raise RuntimeError(f"no child could begin: {child.stderr.read()[-2000:]}")
        for done, number in enumerate(numbers):
            child.stdin.write(f"{number}\n")
            child.stdin.flush()
            begun = _line(child, WATCHDOG) or {"case": number, "begins": "?"}
            ended = _line(child, WATCHDOG)
            if ended is None:
                died = child.poll() is not None
                outcome = f"died with {child.returncode}" if died else f"above {WATCHDOG} s"
                report(
                    {
                        "case": number,
                        "words": begun["begins"],
                        "outcome": outcome,
                        "detail": "",
                        "cpu": WATCHDOG,
                        "wall": WATCHDOG,
                        "mb": 0.0,
                    }
                )
                return numbers[done + 1 :]
            report(ended)
        return []
    finally:
        child.kill()
        child.wait()
        for stream in (child.stdin, child.stdout, child.stderr):
            stream.close()


def _line(child: Any, seconds: float) -> dict[str, Any] | None:
    """The next line of a child; None if it ended or said nothing in time."""
    ready, _, _ = select.select([child.stdout], [], [], seconds)
    line = child.stdout.readline() if ready else ""
    return json.loads(line) if line else None


def problem(case: dict[str, Any]) -> str:
    """What is wrong with how a case ended; empty if nothing is."""
    if case["outcome"] not in ("accepted", "refused"):
        return f"{case['outcome']}: {case['detail']}"
    if case["cpu"] > SECONDS:
        return f"took {case['cpu']:.1f} s"
    if case["mb"] > MEGABYTES:
        return f"took {case['mb']:.0f} MB"
    if case.get("unprintable"):
        return f"control characters: {case['detail'][:200]!r}"
    return ""
