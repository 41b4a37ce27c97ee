"""The index of docs/ lists every page, links lead to files, and the architecture names the folders that there are."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))


def links(page: Path) -> list[str]:
    """Files that a page links to, seen from its folder."""
    found = re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    return [link for link in found if "://" not in link]


def test_every_page_is_in_the_index_once():
    listed = links(ROOT / "docs" / "README.md")
    assert sorted(listed) == [page.name for page in PAGES if page.name != "README.md"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page):
    missing = [link for link in links(page) if not (page.parent / link).exists()]
    assert not missing


def test_the_architecture_names_every_folder_and_no_other():
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    named = re.findall(r"^      (\w+)/ ", text, re.MULTILINE)
    there = {path.parent.name for path in (ROOT / "wonderland").glob("*/__init__.py")}
    assert len(named) == len(set(named))
    assert set(named) == there
