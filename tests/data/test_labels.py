import numpy as np
import pandas as pd
import pytest

from wonderland.core import WonderlandError
from wonderland.data.labels import label_target, read_labels, separator_of

LISTS = pd.DataFrame({"path": list("abcd"), "tags": ["red;blue", "blue", "red", "blue; red"]})
FLAGS = pd.DataFrame({"path": list("abc"), "cat": [0, 1, 1], "dog": ["yes", "no", "no"]})


def test_targets_with_several_labels_are_found():
    assert label_target(LISTS, None, None, ("path",)) == ["tags"]
    assert label_target(LISTS, "tags", None, ("path",)) == ["tags"]
    assert label_target(FLAGS, None, None, ("path",)) == ["cat", "dog"]
    assert label_target(FLAGS, "cat, dog", None, ("path",)) == ["cat", "dog"]
    assert label_target(FLAGS.assign(size=[1.5, 2.5, 3.5]), None, None, ("path",)) is None
    assert label_target(FLAGS, "cat", None, ("path",)) is None
    assert label_target(LISTS, "tags", "multiclass", ("path",)) is None
    assert separator_of(pd.Series(["a|b", "b|a"] * 3)) == "|"


def test_labels_become_zeros_and_ones():
    y, names, rows = read_labels(LISTS, ["tags"], [])
    assert (names, y.tolist(), rows.tolist()) == (["blue", "red"], [[1, 1], [1, 0], [0, 1], [1, 1]], [0, 1, 2, 3])
    findings = []
    y, names, rows = read_labels(FLAGS.assign(dog=["yes", None, "no"]), ["cat", "dog"], findings)
    assert (y[rows].tolist(), rows.tolist()) == ([[0, 1], [1, 0]], [0, 2])
    assert findings[0].text == "1 row has an empty cell among the labels and is left out."
    assert findings[-1].text == "Each row has any number of 2 labels (1 on average): the task is multilabel."


@pytest.mark.parametrize(
    ("frame", "target", "task", "sentence"),
    [
        (LISTS, "tag", "multilabel", r"There is no column 'tag'. Did you mean 'tags'\? The columns are path, tags."),
        (FLAGS, "cat,dgo", None, r"There is no column 'dgo'. Did you mean 'dog'\? The columns are path, cat, dog."),
        (
            LISTS.assign(tags=list("abcd")),
            None,
            "multilabel",
            "No column holds several labels: name one with lists such as a;b, or several columns of 0 and 1, with target.",
        ),
    ],
)
def test_targets_that_are_not_there(frame, target, task, sentence):
    with pytest.raises(WonderlandError, match=f"^{sentence}$"):
        label_target(frame, target, task, ("path",))


def test_cells_that_are_no_labels():
    with pytest.raises(
        WonderlandError, match="Column 'cat' holds '2' in row 3: a label column has 1 for yes and 0 for no"
    ):
        read_labels(FLAGS.assign(cat=[0, 1, 2]), ["cat", "dog"], [])
    with pytest.raises(WonderlandError, match="Several labels are learned from at least two of them"):
        read_labels(pd.DataFrame({"tags": ["a", "a"]}), ["tags"], [])
    assert np.isfinite(read_labels(LISTS, ["tags"], [])[0]).all()
