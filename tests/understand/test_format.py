"""Formatting of numbers."""

import pytest

from wonderland.understand.format import number

INF = float("inf")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (None, "–"),
        (INF, "–"),
        ("7", "–"),
        (-3, "−3"),
        (0.99962, "0.9996"),
        (1234.5, "1,234"),
        (1e9, "1,000,000,000"),
        (1.5e15, "1.5e15"),
        (12345678.9, "1.23e7"),
        (2e-7, "2e-7"),
        (0.5, "0.500"),
    ],
)
def test_number(value, text):
    assert number(value) == text
