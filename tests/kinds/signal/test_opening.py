"""The forms that many series come in, and what is said about those that cannot be read."""

import numpy as np
import pandas as pd
import pytest

import wonderland
from tests.kinds.signal.made import long_table, wave, write_ts
from wonderland.core import WonderlandError
from wonderland.data import Glimpse
from wonderland.kinds import KINDS
from wonderland.kinds import open as opened
from wonderland.kinds.choose import choose


def test_all_forms_hold_the_same_series(tmp_path):
    ts = opened(write_ts(tmp_path / "waves.ts", range(8)))
    long_table(range(8)).to_csv(tmp_path / "long.csv", index=False)
    long = opened(tmp_path / "long.csv", series="id", target="pitch")
    for row in range(8):
        folder = tmp_path / "folders" / ("high" if row % 2 else "low")
        folder.mkdir(parents=True, exist_ok=True)
        pd.DataFrame(wave(row), columns=["x", "y"]).to_csv(folder / f"{row}.csv", index=False)
    folders = opened(tmp_path / "folders")
    pd.DataFrame(
        {"file": [f"folders/{('low', 'high')[row % 2]}/{row}.csv" for row in range(8)], "pitch": ["low", "high"] * 4}
    ).to_csv(tmp_path / "list.csv", index=False)
    listed = opened(tmp_path / "list.csv")
    arrays = opened(([wave(row) for row in range(8)], ["low", "high"] * 4), kind="signal")
    for other in (long, folders, listed, arrays):
        assert other.kind == "signal"
        assert other.classes == ["high", "low"]
        order = np.argsort([value[0, 0] for value in other.values])
        mine = np.argsort([value[0, 0] for value in ts.values])
        for a, b in zip(order, mine, strict=True):
            np.testing.assert_allclose(other.values[a], ts.values[b], atol=1e-6)
            assert other.answer(a) == ts.answer(b)
    assert long.channels == ["x", "y"]


def test_a_train_and_a_test_file_of_a_folder_belong_together(tmp_path):
    write_ts(tmp_path / "Waves_TRAIN.ts", range(20))
    test = write_ts(tmp_path / "Waves_TEST.ts", range(20, 26))
    assert choose(Glimpse(tmp_path), None, {}, KINDS).name == "signal"
    together = opened(tmp_path)
    assert together.test_rows.sum() == 6
    assert "Waves_TEST.ts holds the test series: 6." in [finding.text for finding in together.findings]
    given = opened(tmp_path / "Waves_TRAIN.ts", test=test)
    assert given.test_rows.sum() == 6
    run = wonderland.fit(tmp_path / "Waves_TRAIN.ts", test=test, out=tmp_path / "run", threads=1)
    assert run.metrics["accuracy"] > 0.8
    assert run.config["split"]["sizes"]["test"] == 6
    assert run.predict([wave(3)])["prediction"].tolist() == ["high"]
    with pytest.raises(WonderlandError, match=r"This model reads series of 2 channels, and those of list have 1\."):
        run.predict([wave(3)[:, :1]])


def test_numbers_are_learned_too(tmp_path):
    path = write_ts(tmp_path / "values.ts", range(24), "@targetlabel true")
    assert opened(path).task == "regression"
    run = wonderland.fit(path, out=tmp_path / "run", threads=1)
    assert {"prediction", "low", "high"} <= set(run.predict(path).columns)


def test_gaps_and_stamps_are_read(tmp_path):
    path = tmp_path / "gaps.ts"
    path.write_text(
        "@timeStamps true\n@classLabel true a b\n@data\n(0,1),(1,?),(2,3):a\n(0,5),(1,6):b\n(0,1),(1,1):a\n(2,2),(3,9):b\n"
    )
    data = opened(path)
    assert [value[:, 0].tolist() for value in data.values] == [[1, 2, 3], [5, 6], [1, 1], [2, 9]]
    texts = [finding.text for finding in data.findings]
    assert "1 value is missing or infinite; they are interpolated between their neighbours." in texts
    assert "The series have 2 to 3 steps; models read each to its own end." in texts
    assert "1 series is constant." in texts
    with pytest.raises(WonderlandError, match=r"Strict mode stops here. 1 value is missing"):
        opened(path, strict=True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("@classLabel true a b\n", "{path} has no @data line, after which the series would come: it is damaged or cut short."),
        ("@classLabel true a b\n@data\n", "{path} has no series after @data. Add some, or give another file."),
        ("@classLabel true a b\n@data\n1,2:a\n1,x:b\n", "{path} has 'x' in line 4, which is not a number."),
        ("@classLabel true a b\n@data\n1,2:a\n1:2:b\n", "{path} has 2 channels in line 4, and 1 in the lines before."),
        ("@classLabel true a b\nhello\n@data\n", "{path} has 'hello' in line 2, before @data: a header begins with @."),
        ("@problemName x\n@data\n1,2\n", "{path} has no classes and no values to learn: its header has neither @classLabel true nor @targetLabel true."),
    ],
)  # fmt: skip
def test_a_damaged_file_is_refused(tmp_path, text, message):
    path = tmp_path / "bad.ts"
    path.write_text(text)
    with pytest.raises(WonderlandError) as refused:
        opened(path)
    assert str(refused.value) == message.format(path=path)


def test_a_series_with_several_answers_is_refused(tmp_path):
    frame = long_table(range(6))
    frame.loc[frame["time"] == 3, "pitch"] = "other"
    with pytest.raises(
        WonderlandError, match=r"Series 's0' has several values of 'pitch': a series has one class or number."
    ):
        opened(frame, kind="signal", series="id", target="pitch")
