"""The confusion matrix shows counts and percentages, and of many classes those with the most errors."""

from tests.understand.charts.drawn import texts
from wonderland.understand import charts


def test_confusion_has_counts_and_row_percentages():
    svg = charts.confusion([[8, 2], [0, 0]], ["cat", "dog"])
    labels = texts(svg)
    assert "8" in labels
    assert "80%" in labels
    assert "2" in labels
    assert "20%" in labels
    assert charts.MISSING in labels
    assert "true cat, predicted dog: 2 (20.0\xa0% of the row)" in svg
    assert "8 of 10 correct over 2 classes" in svg


def test_many_classes_show_those_with_most_errors():
    size = 30
    matrix = [[10 if i == j else 0 for j in range(size)] for i in range(size)]
    for i in range(5, 25):
        matrix[i][(i + 1) % size if i < 24 else 5] = 3
    svg = charts.confusion(matrix, [f"c{i}" for i in range(size)])
    labels = set(texts(svg))
    assert {f"c{i}" for i in range(5, 25)} <= labels
    assert not {"c0", "c4", "c25", "c29"} & labels
    assert "drawn are the 20 classes with the most errors" in svg
