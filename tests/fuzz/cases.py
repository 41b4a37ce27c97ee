"""Cases: a run, a mutation and what is called on it, chosen by the number of the case; and their children."""

import json
import os
import random
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tests.fuzz import mutate_files, subjects

SECONDS, MEGABYTES = 1.0, 200.0
WATCHDOG = 30.0  # by the clock
ROOT = Path(__file__).parents[2]
ACTIONS = (
    "predict",
    "predict",
    "evaluate",
    "shell",
    "resume",
    "resume",
    "resume",
    "report",
    "show",
    "shift",
    "ability",
    "embed",
    "serve",
)
PARTS = ("config.json", "preprocess.json", "trust.json")  # those of which there is most to change are chosen more often


def prepare(draw: random.Random, home: Path, place: Path, only: str | None = None) -> tuple[str, Callable[[], Any]]:
    """A mutated copy of a run at `place`, in words, and the call to try on it. `only` names the run."""
    name = draw.choice(sorted(subjects.RUNS))
    subject = subjects.make_run(only or name, home)
    action = draw.choice(ACTIONS)
    warm_up(subject, action)
    shutil.copytree(subject.folder, place)
    strangers = tuple(sorted(path for path in home.glob("*/run") if path != subject.folder))
    checkpoints = sorted(f"checkpoint/{path.name}" for path in (place / "checkpoint").glob("*.safetensors"))
    files = sorted(
        path.name for path in place.iterdir() if path.is_file() and path.suffix in (".json", ".jsonl", ".safetensors")
    )
    if action == "resume" and draw.random() < 0.7:  # training is taken up again from the newest checkpoint
        (place / "model.safetensors").unlink()
        (place / "trust.json").unlink()
        files = [*checkpoints[-1:] * 5, "config.json", "metrics.jsonl", "preprocess.json", *checkpoints]
    elif action == "resume":
        files += checkpoints * 2
    if action == "report":
        (place / "report.html").unlink()
    files += [name for name in PARTS if name in files]
    names = {draw.choice(files)}
    if draw.random() < 0.2:
        names.add(draw.choice(files))
    words = [mutate_files.mutate_file(place / name, draw, strangers) for name in sorted(names)]
    if draw.random() < 0.03:
        words.append(_beside(place, draw))
    signed = draw.random() < 0.8
    if signed:
        mutate_files.sign_again(place)
    said = f"{subject.name}, {action}{', signed again' if signed else ''}: {' | '.join(words)}"
    return said, lambda: call(action, place, subject.new)


def _beside(place: Path, draw: random.Random) -> str:
    """Something that no run has, or a lock or a checkpoint that is none."""
    ways: dict[str, Callable[[], Any]] = {
        "a lock that is a pipe": lambda: [(place / ".lock").unlink(missing_ok=True), os.mkfifo(place / ".lock")],
        "a lock that is a folder": lambda: [(place / ".lock").unlink(missing_ok=True), (place / ".lock").mkdir()],
        "a checkpoint of a far step": lambda: shutil.copy(next((place / "checkpoint").glob("*.safetensors")), place / "checkpoint" / f"step-{'9' * 30}.safetensors"),
        "a checkpoint without a number": lambda: (place / "checkpoint" / "step-x.safetensors").write_bytes(b"x"),
        "a part of a file": lambda: (place / ".config.json.1.part").write_bytes(b"x"),
        "a name that is not UTF-8": lambda: Path(os.fsdecode(os.fsencode(place) + b"/caf\xe9.json")).write_bytes(b"{}"),
    }  # fmt: skip
    way = draw.choice(sorted(ways))
    ways[way]()
    return way


def call(action: str, folder: Path, new: str) -> Any:
    """What a user does with a run folder."""
    import wonderland
    from wonderland.cli.main import main
    from wonderland.ship.predictor import Predictor

    if action in ("resume", "report"):
        return repr(wonderland.fit(resume=folder))
    if action == "shell":
        code = main(["predict", str(folder), new, "-o", str(folder / "predictions.csv")])
        if code == 2:
            raise SystemExit(2)
        return str(code)
    if action == "show":
        from wonderland.studio.catalog import Catalog

        return json.dumps([Catalog(folder).runs(), Catalog(folder.parent).runs()], default=str)
    run = wonderland.load(folder)
    said = repr(run) + run._repr_html_() + "".join(run.findings)
    if action == "shift":
        return said and repr(run.shift(new))
    if action == "ability":
        for name in run.abilities:
            ability = run.ability(name)
            said += repr(ability) + str(ability(2) if getattr(ability, "draws", False) else ability("the"))
        return said
    if action == "embed":
        return said + str(run.embed(new).shape)
    if action == "serve":
        predictor = Predictor(run)
        usual = {"number": 1, "date": "2020-01-02", "text": "the fox"}
        row = {field.name: field.levels[0] if field.levels else usual.get(field.kind) for field in predictor.fields}
        answers = [] if None in row.values() else predictor.answer([row])
        return said + json.dumps([predictor.about(), answers], default=str)
    return said and str(len(run.predict(new) if action == "predict" else run.evaluate(new)))


_WARM: set[tuple[str, str]] = set()


def warm_up(subject: subjects.Subject, action: str) -> None:
    """Import and build everything that an honest use needs, once, so that cases measure themselves alone."""
    from wonderland.core import WonderlandError

    for name in {"predict", action} - {"report"}:
        if (subject.name, name) not in _WARM:
            _WARM.add((subject.name, name))
            try:
                call(name, subject.folder, subject.new)
            except WonderlandError:  # not every kind of run can be tested for shift
                if name not in ("shift", "ability", "embed", "serve"):
                    raise


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
    child.buffered = bytearray()  # pyright: ignore[reportAttributeAccessIssue]
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
            begun = _line(child, 300) or {"case": number, "begins": "?"}
            ended = _line(child, WATCHDOG)
            if ended is None:
                died = child.poll() is not None
                outcome = f"died with {child.returncode}" if died else f"above {WATCHDOG} s"
                report({"case": number, "words": begun["begins"], "outcome": outcome, "detail": child.stderr.read()[-600:] if died else "",
                        "cpu": WATCHDOG, "wall": WATCHDOG, "mb": 0.0})  # fmt: skip
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
    end, buffered = time.monotonic() + seconds, child.buffered
    while b"\n" not in buffered:  # two lines may come at once, so what was read is kept here and not in a stream
        ready, _, _ = select.select([child.stdout], [], [], max(0.0, end - time.monotonic()))
        read = os.read(child.stdout.fileno(), 1 << 16) if ready else b""
        if not read:
            return None
        buffered += read
    line, _, rest = bytes(buffered).partition(b"\n")
    buffered[:] = rest
    return json.loads(line)


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
