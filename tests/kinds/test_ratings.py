"""Ratings and clicks as a kind of data: split by time, measured beside simple ways, refused in sentences."""

import numpy as np
import pandas as pd
import pytest

import wonderland
from tests.kinds.battery import Battery, data, home, run  # noqa: F401 - fixtures
from wonderland.cli.main import main
from wonderland.core import WonderlandError
from wonderland.kinds.ratings.events import Events, Past


def events(rows: int = 400, users: int = 12, items: int = 15, seed: int = 0) -> pd.DataFrame:
    """Users of two tastes."""
    draw = np.random.default_rng(seed)
    user = draw.integers(users, size=rows)
    item = (draw.integers(items // 2, size=rows) + (user % 2) * (items // 2)) % items
    table = pd.DataFrame(
        {"user": user, "item": item, "rating": draw.integers(1, 6, size=rows), "time": np.arange(rows)}
    )
    return table.drop_duplicates(["user", "item"])


class TestRatings(Battery):
    kind = "ratings"

    def make(self, folder):
        table = events()
        table.to_csv(folder / "ratings.csv", index=False)
        table.tail(20).assign(item=lambda t: (t["item"] + 3) % 15).to_csv(folder / "new.csv", index=False)
        return folder / "ratings.csv", folder / "new.csv"


class TestRatingGoal(TestRatings):
    options = {"goal": "rating"}


def test_nothing_of_a_row_s_own_moment_or_later_is_in_its_history():
    frame = pd.DataFrame({"user": list("aabab"), "item": list("uvwxy"), "time": [1, 2, 2, 2, 3]})
    dataset = Events(frame, {}, name="f", origin={}, goal=None)
    past = Past(dataset)
    names = [[dataset.item_names[code - 1] for code in past.before(row)] for row in range(5)]
    assert names == [[], ["u"], [], ["u"], ["w"]]


def test_the_test_part_lies_after_the_training_part():
    dataset = wonderland.kinds.open(events())
    parts = wonderland.kinds.KINDS["ratings"].split(dataset, test=0.2, seed=0)
    assert dataset.times[parts.train].max() < dataset.times[parts.validation].min()
    assert dataset.times[parts.calibration].max() < dataset.times[parts.test].min()


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    return wonderland.fit(events(), out=tmp_path_factory.mktemp("r") / "run", steps=20, threads=1)


def test_users_get_items_they_have_not_chosen_and_new_users_get_some_too(fitted):
    table = fitted.predict(pd.DataFrame({"user": [0, 1, "nobody"]}), top=3)
    assert list(table) == ["user", "rank", "prediction", "probability"]
    chosen = set(events()[lambda t: t["user"] == 0]["item"].astype(str))
    assert not chosen & set(table[table["user"] == "0"]["prediction"])
    assert len(table[table["user"] == "nobody"]) == 3
    assert any(finding.kind == "new" for finding in fitted.noticed)
    assert len(fitted.ability("similar")("3", top=4)) == 4


def test_the_shell_takes_top(fitted, tmp_path, capsys):
    pd.DataFrame({"user": [0, 1]}).to_csv(tmp_path / "users.csv", index=False)
    assert (
        main(
            ["predict", str(fitted.folder), str(tmp_path / "users.csv"), "--top", "2", "-o", str(tmp_path / "top.csv")]
        )
        == 0
    )
    assert len(pd.read_csv(tmp_path / "top.csv")) <= 4


def test_other_kinds_have_no_such_option(tmp_path):
    iris = wonderland.fit("iris", out=tmp_path / "iris", steps=2, threads=1)
    with pytest.raises(WonderlandError, match="predict has no option 'top' for table"):
        iris.predict("iris", top=3)


@pytest.mark.parametrize("model", ["SequenceRecommender(dim=8, depth=1, mixer=GRU())", "NeuMF(dim=4)", "AutoRec(hidden=4)", "Caser(dim=4)",
                                   "FactorisationMachine(dim=4)", "DeepFM(dim=4, hidden=4)"])  # fmt: skip
def test_every_recommender_can_be_asked_for(model, tmp_path):
    assert wonderland.fit(events(), out=tmp_path / "run", steps=2, model=model, threads=1).metrics["ndcg"] >= 0


def test_what_had_to_be_repaired_is_told():
    frame = pd.concat(
        [events(), events().head(3), pd.DataFrame({"user": [None], "item": [1], "rating": [3], "time": [999]})]
    )
    frame["rating"] = frame["rating"].astype(object)
    frame.iloc[5, 2] = "good"
    kinds = [finding.kind for finding in wonderland.kinds.open(frame).findings]
    assert kinds == ["missing", "rating", "duplicate"]
    assert [f.kind for f in wonderland.kinds.open(events()[["user", "item"]], kind="ratings").findings] == ["time"]


def test_users_and_items_are_the_same_however_their_numbers_are_written():
    frame = events().astype({"user": float, "item": float})
    frame.loc[frame.index[0], "user"] = np.nan
    dataset = wonderland.kinds.open(frame)
    assert set(dataset.user_names) == {str(i) for i in range(12)}
    assert all(name.isdigit() for name in dataset.item_names)


def test_a_table_without_names_of_columns_is_read_in_the_usual_order(tmp_path):
    events().to_csv(tmp_path / "u.data", sep="\t", header=False, index=False)
    dataset = wonderland.kinds.open(tmp_path / "u.data", kind="ratings")
    assert dataset.roles == {"user": "user", "item": "item", "rating": "rating", "when": "when"}


def test_one_time_for_all_rows_is_no_order():
    dataset = wonderland.kinds.open(events().assign(time=5))
    assert "Column 'time' holds 1 time: rows are taken to be in order of time." in [f.text for f in dataset.findings]
    assert len(np.unique(dataset.times)) == len(dataset)


def test_a_user_who_has_chosen_everything_is_said(tmp_path):
    every = pd.DataFrame([(u, i) for u in range(6) for i in range(6)], columns=["user", "item"])
    fit = wonderland.fit(every, out=tmp_path / "run", steps=2, threads=1)
    assert not len(fit.predict(pd.DataFrame({"user": [0]})))
    assert [finding.text for finding in fit.noticed] == [
        "1 user has chosen every item already, so nothing is left to recommend."
    ]


def one(**columns):
    return lambda: wonderland.kinds.open(events(60).assign(**columns), kind="ratings")


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (one(user=1), "There is only one user in frame, so there is nothing to tell apart."),
        (one(item="x"), "There is only one item in frame, so there is nothing to tell apart."),
        (lambda: wonderland.kinds.open(events().assign(rating="good"), kind="ratings", goal="rating"), "Ratings must be numbers, and 'rating' holds 'good': rank items instead (--goal ranking)."),
        (lambda: wonderland.kinds.open(events().assign(rating=3), kind="ratings", goal="rating"), "Every rating is the same, so there is nothing to learn: rank items instead (--goal ranking)."),
        (lambda: wonderland.kinds.open(events()[["user", "item"]], kind="ratings", goal="rating"), "frame has no column of ratings: name it with rating (--rating), or rank items (--goal ranking)."),
        (lambda: wonderland.kinds.open(events().rename(columns={"item": "thing"}), kind="ratings"), "frame has no column of items: name it with item (--item)."),
        (lambda: wonderland.kinds.open(events(), kind="ratings", item="itm"), "There is no column 'itm' (given as item). Did you mean 'item'?"),
        (lambda: wonderland.fit(events().head(5), kind="ratings"), "frame holds 5 events; at least 8 are needed to learn from some and measure on others."),
        (lambda: wonderland.kinds.open(events().assign(time="noon"), kind="ratings"), "Column 'time' holds 84 cells that are no times: clean them, or name another with when (--when)."),
    ],
)  # fmt: skip
def test_what_cannot_be_learned_is_told(call, sentence):
    with pytest.raises(WonderlandError) as told:
        call()
    assert str(told.value) == sentence
