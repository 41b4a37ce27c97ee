"""The confusion matrix has counts and shares, and of many classes the worst."""

from tests.understand.charts.drawn import texts
from wonderland.understand import charts


def test_confusion_has_counts_and_row_percentages():
    svg = charts.confusion([[8, 2], [0, 0]], ["cat", "dog"])
    found = texts(svg)
    assert "8" in found
    assert "80%" in found
    assert "2" in found
    assert "20%" in found
    assert charts.MISSING in found
    assert "cat taken for dog: 2 (20.0\xa0% of the row)" in svg
    assert "8 of 10 right over 2 classes" in svg


def test_many_classes_show_those_with_most_errors():
    size = 30
    matrix = [[10 if i == j else 0 for j in range(size)] for i in range(size)]
    for i in range(5, 25):
        matrix[i][(i + 1) % size if i < 24 else 5] = 3
    svg = charts.confusion(matrix, [f"c{i}" for i in range(size)])
    found = set(texts(svg))
    assert {f"c{i}" for i in range(5, 25)} <= found
    assert not {"c0", "c4", "c25", "c29"} & found
    assert "drawn are the 20 classes with the most errors" in svg
