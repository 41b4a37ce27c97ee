import pytest

from wonderland.cli import show


def found(**changes):
    conformal = {"level": 0.9, "coverage": 0.9, "mean_size": 1.0, "note": "", "empty": 0}
    return {
        "rows": 400,
        "metrics": changes.get("metrics", {"accuracy": 0.9}),
        "most_frequent": {"class": "no", "share": changes.get("share", 0.5)},
        "conformal": conformal | changes.get("conformal", {}),
    }


def test_good_numbers_give_no_warning():
    assert show.warnings_about(found()) == []


def test_misleading_numbers_give_a_warning():
    assert show.warnings_about(found(share=0.97)) == [
        "Always predicting 'no' would be right 97.0% of the time: the model is no better. Look at the balanced accuracy."
    ]
    assert show.warnings_about(found(conformal={"coverage": 0.7})) == [
        "Coverage is 70.0% where 90% was asked, less than chance alone explains. wonderland shift tests whether rows differ "
        "from those of the fit."
    ]
    assert show.warnings_about(found(metrics={"accuracy": 0.9, "r2": -0.5})) == [
        "Always predicting the mean would be as good: the model explains nothing of these rows."
    ]


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), (15850.4, "15,850"), (0.12345, "0.1235"), (3, "3"), (True, "True")]
)
def test_numbers_as_text(value, text):
    assert show.printable_cell(value) == text
    assert show.printable_cell("one\n\x1b") == "one↵\ufffd"
    assert show.counted(1, "row") == "1 row"
    assert show.counted(1200, "row") == "1,200 rows"
