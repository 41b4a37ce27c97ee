"""The code on the pages of docs/ runs, messages of the FAQ exist, notebooks run, and the site builds without a warning."""

import os
import re
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}


def code(page: Path) -> str:
    return "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL))


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES if code(page)], ids=lambda page: page.name)
def test_the_python_of_a_page_runs(page, tmp_path):
    words = [sys.executable, "-W", "error", "-c", code(page)]
    done = subprocess.run(words, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]


@pytest.mark.slow
def test_the_commands_of_the_first_page_run(tmp_path):
    script = "\n".join(re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "start.md").read_text(), re.DOTALL))
    script = script.replace("wonderland ", f"{sys.executable} -m wonderland ")
    done = subprocess.run(
        ["bash", "-euc", script], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_messages_of_the_faq_exist():
    source = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "wonderland").rglob("*.py"))
    messages = re.findall(r"^\| `([^`]+)` \|", (ROOT / "docs" / "faq.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert len(messages) > 10
    assert not [message for message in messages if message not in source]


NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))


def test_notebooks_are_kept_without_outputs():
    assert len(NOTEBOOKS) == 6
    for path in NOTEBOOKS:
        cells = nbformat.read(path, as_version=4).cells
        assert not [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")], path.name


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}
    )
    client.create_kernel_manager()
    client.km.transport = "ipc"  # pyright: ignore
    client.execute()


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path):
    pytest.importorskip("mkdocs", reason="the extra docs is not installed: make docs")
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(
        words, cwd=ROOT, env={**ENVIRONMENT, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert not done.stderr
    page = (tmp_path / "site" / "reference" / "nn" / "index.html").read_text(encoding="utf-8")
    assert "<math" in page
    assert not re.search(r"<(?:script|link|img)[^>]+(?:src|href)=\"https?://", page)
