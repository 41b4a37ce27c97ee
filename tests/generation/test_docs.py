"""The examples of docs/generation.md run as they stand there, one after the other."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_guide_runs():
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "generation.md").read_text(), re.DOTALL)
    assert len(blocks) >= 6
    command = [sys.executable, "-W", "error", "-c", "\n".join(blocks)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert re.search(r"b'(19|20)\d\d-\d\d-\d\d'", done.stdout)
    assert '{"name":' in done.stdout
