"""Findings and strict mode."""

import re

import pytest

from wonderland.core import WonderlandError
from wonderland.data import Finding
from wonderland.data.dataset import stop_if_strict


def test_findings_know_whether_they_are_repairs():
    assert Finding("missing", "a", 1, "x").repair
    assert not Finding("target", "a", 1, "x").repair
    assert Finding("missing", "a", 1, "x").to_json() == {"kind": "missing", "subject": "a", "count": 1, "text": "x"}


def test_strict_lists_the_first_three():
    findings = [Finding("missing", "a", 1, f"Fault {i}.") for i in range(5)] + [Finding("target", "y", 1, "Note.")]
    stop_if_strict(findings, False)
    stop_if_strict(findings[-1:], True)
    text = "Strict mode stops here. Fault 0. Fault 1. Fault 2. And 2 more. Clean the data, or leave strict mode."
    with pytest.raises(WonderlandError, match="^" + re.escape(text) + "$"):
        stop_if_strict(findings, True)
