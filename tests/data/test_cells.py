"""A value has one label, wherever it comes from."""

import numpy as np
import pandas as pd

from wonderland.data.cells import label, levels_of_few, to_levels


def test_labels_agree_between_files_frames_and_arrays():
    for cells in (["1", "0", "1"], [1, 0, 1], [1.0, 0.0, 1.0], ["1.0", "0.0", " 1"], np.array(["1", "0", "1"])):
        codes, levels = to_levels(pd.Series(cells))
        assert levels[codes].tolist() == ["1", "0", "1"]
    assert label(b"x") == "x"


def test_texts_that_need_a_label_are_found_at_any_position():
    cells = ["a", "", "NA", "n/a", " b", "b", "2.0", "2", "true", "c ", "a\nNA\nb", "x.00"]
    codes, levels = to_levels(pd.Series(cells, dtype=object))
    assert levels.tolist() == ["a", "b", "2", "True", "c", "a\nNA\nb", "x.00"]
    assert codes.tolist() == [0, -1, -1, -1, 1, 1, 2, 2, 3, 4, 5, 6]


def test_a_few_texts_have_the_levels_of_many():
    texts = [" a", "a", None, "3.0", "3", "TRUE", "n/a", "b ", "nan", "-", "b", "10.00", ".0"]
    cells = pd.Series(texts, dtype="str")
    for size in (1, 5, len(texts)):
        codes, levels = to_levels(cells.iloc[:size])
        own_codes, own_levels = levels_of_few(cells.iloc[:size].to_numpy(object))
        assert codes.tolist() == own_codes.tolist()
        assert levels.tolist() == own_levels.tolist()
