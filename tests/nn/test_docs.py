"""The Python in docs/mixers.md runs as it stands."""

import re
import runpy
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs" / "mixers.md"


def test_the_code_in_the_guide_runs(tmp_path):
    blocks = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert len(blocks) >= 2
    (tmp_path / "guide.py").write_text("\n".join(blocks))
    assert runpy.run_path(str(tmp_path / "guide.py"))["b"].shape == (2, 1, 16)
