"""A folder of runs as people have them: finished ones, one that is training, one that stopped, one that is damaged."""

import json
import os
import shutil
import time
from pathlib import Path

from tests import runs

SCRIPT = "<img src=x onerror=document.title='owned'>"


def make(root: Path, *, images: bool = True) -> Path:
    """Fill a folder with runs."""
    shutil.copytree(runs.classifier().folder, root / "mixed")
    shutil.copytree(runs.regressor().folder, root / "numbers" / "diabetes")
    if images:
        shutil.copytree(runs.digits().folder, root / "digits")
    for name in ("live", "stopped"):
        shutil.copytree(runs.classifier().folder, root / name)
        for file in ("trust.json", "report.html", "model.safetensors"):
            (root / name / file).unlink()
        lines = (root / name / "metrics.jsonl").read_text().splitlines(keepends=True)
        (root / name / "metrics.jsonl").write_text(lines[0] + '{"step": 2')  # a line that is being written
    long_ago = time.time() - 9999
    for file in (root / "stopped").iterdir():
        if file.is_file():
            os.utime(file, (long_ago, long_ago))
    (root / "damaged").mkdir()
    (root / "damaged" / "config.json").write_text("{nothing")
    hostile = root / SCRIPT.replace("/", "")
    hostile.mkdir()
    config = json.loads((root / "mixed" / "config.json").read_text())
    config["source"] |= {"name": SCRIPT, "findings": [SCRIPT]}
    (hostile / "config.json").write_text(json.dumps(config))
    (root / "no run").mkdir()
    return root


def many(root: Path, count: int) -> Path:
    """A folder of many finished runs, with different accuracies."""
    source = runs.classifier().folder
    trust = json.loads((source / "trust.json").read_text())
    for i in range(count):
        folder = root / f"run {i:03}"
        folder.mkdir(parents=True)
        for file in ("config.json", "metrics.jsonl", "times.jsonl", "model.safetensors"):
            shutil.copy(source / file, folder / file)
        trust["measured"]["test"]["metrics"]["accuracy"] = 0.5 + 0.4 * ((7 * i) % count) / count
        (folder / "trust.json").write_text(json.dumps(trust))
    return root
