"""Numbers are read as people write them."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from wonderland.data.numbers import parse_numbers


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=20))
def test_numbers_written_with_separators_come_back(values):
    texts = np.array([f"{value:,.3f}" for value in values], dtype=object)
    np.testing.assert_allclose(parse_numbers(texts), values, atol=1e-3)


def test_signs_and_styles():
    texts = [
        "$1,234.50",
        "12 %",
        "EUR 7",
        "1\u00a0000",
        "1,23",
        "12,34,567",
        "1.5,200",
        "1e3",
        "1,200e3",
        "x\0",
        "",
        "$",
    ]
    expected = [1234.5, 12, 7, 1000, np.nan, np.nan, np.nan, 1000, np.nan, np.nan, np.nan, np.nan]
    np.testing.assert_array_equal(parse_numbers(np.array(texts, dtype=object)), expected)


def test_the_style_that_reads_more_wins():
    np.testing.assert_array_equal(
        parse_numbers(np.array(["1.234,5", "€1.234", "2,5"], dtype=object)), [1234.5, 1234, 2.5]
    )
    np.testing.assert_array_equal(
        parse_numbers(np.array(["1,234.5", "€1.234", "9,5"], dtype=object)), [1234.5, 1.234, np.nan]
    )


def test_brackets_are_a_minus():
    texts = ["(1,234.50)", "$(20)", "(5)", "(-5)", "(x)", "(5", "3"]
    expected = [-1234.5, -20, -5, np.nan, np.nan, np.nan, 3]
    np.testing.assert_array_equal(parse_numbers(np.array(texts, dtype=object)), expected)
