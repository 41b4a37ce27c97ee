"""fit for questions about texts: forms of files, no-answer, the sliding window beside it."""

import json
import random
import re
from pathlib import Path

import pandas as pd
import pytest

import wonderland
from tests.kinds.battery import Battery, data, home, run  # noqa: F401 - fixtures
from wonderland.core import WonderlandError
from wonderland.data.reading import Reading
from wonderland.data.text.questions import read_questions
from wonderland.kinds import open as open_data

FACTS = {
    "born": ("{0} was born in {1} .", "Where was {0} born ?"),
    "job": ("{0} works as a {1} today .", "What does {0} work as ?"),
}
VALUES = {"born": ["Ulm", "New York", "Bonn", "Rome"], "job": ["baker", "judge", "night nurse", "smith"]}
NAMES = ["Ada", "Bo", "Cyd", "Dan", "Eva", "Finn", "Gus", "Hal"]


def squad(path: Path, articles: int, seed: int, absent: float = 0.0) -> Path:
    draw = random.Random(seed)
    made = []
    for i in range(articles):
        facts = [(name, draw.choice(list(FACTS))) for name in draw.sample(NAMES, 3)]
        said = [(name, kind, draw.choice(VALUES[kind])) for name, kind in facts]
        context = " ".join(FACTS[kind][0].format(name, value) for name, kind, value in said)
        qas = []
        for j, (name, kind, value) in enumerate(said):
            row = {"id": f"{i}-{j}", "question": FACTS[kind][1].format(name)}
            if draw.random() < absent:
                row |= {"question": FACTS[kind][1].format("Zoe"), "answers": [], "is_impossible": True}
            else:
                at = context.index(value, context.index(name))
                row |= {"answers": [{"text": value, "answer_start": at}], "is_impossible": False}
            qas.append(row)
        made.append({"title": "x", "paragraphs": [{"context": context, "qas": qas}]})
    path.write_text(json.dumps({"version": "v2.0", "data": made}))
    return path


class TestAnswers(Battery):
    kind = "answers"

    def make(self, folder: Path):
        return squad(folder / "train.json", 40, 0), squad(folder / "new.json", 12, 1)


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    folder = tmp_path_factory.mktemp("answers")
    options = {"steps": 120, "threads": 1, "batch_size": 16, "model": "AnswerFinder(dim=24, state_size=16, depth=1)"}
    return wonderland.fit(squad(folder / "train.json", 90, 0, 0.25), out=folder / "run", **options)


def test_it_learns_to_answer_and_to_say_that_there_is_no_answer(answers, tmp_path):
    board = json.loads((answers.folder / "leaderboard.json").read_text())["rows"]
    assert board[1]["name"] == "sliding window"
    assert answers.metrics["exact_match"] > board[1]["metrics"]["exact_match"]
    assert set(answers.metrics) == {"exact_match", "f1", "exact_match_answerable", "exact_match_unanswerable"}
    new = squad(tmp_path / "new.json", 10, 5, 0.25)
    table = answers.predict(new, answers=str(tmp_path / "out.json"))
    assert list(table.columns) == ["question", "prediction", "probability", "set"]
    written = json.loads((tmp_path / "out.json").read_text())
    assert list(written.values()) == table["prediction"].tolist()
    assert set(written) == {f"{i}-{j}" for i in range(10) for j in range(3)}
    context = "Ada was born in Ulm . Bo works as a baker today ."
    one = answers.predict([("Where was Ada born ?", context), ("", context)])
    assert all(text in context for text in one["prediction"])
    assert "are answered exactly" in (answers.folder / "report.html").read_text()


def test_every_form_of_a_file_gives_the_same_questions(tmp_path):
    plain = read_questions(squad(tmp_path / "a.json", 5, 0), Reading())
    assert plain is not None
    rows = [
        {
            "context": plain.contexts[one.context],
            "question": one.text,
            "answers": {"text": [one.answers[0][0]], "answer_start": [one.answers[0][1]]},
        }
        for one in plain.questions
    ]
    (tmp_path / "b.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "c.json").write_text(json.dumps([{**row, "answers": row["answers"]["text"]} for row in rows]))
    pd.DataFrame(
        [
            {**row, "answer": row["answers"]["text"][0], "answer_start": row["answers"]["answer_start"][0]}
            for row in rows
        ]
    ).drop(columns="answers").to_csv(tmp_path / "d.csv", index=False)
    for name in ("b.jsonl", "c.json", "d.csv"):
        dataset = open_data(tmp_path / name)
        assert dataset.kind == "answers"
        assert [one.text for one in dataset.questions] == [one.text for one in plain.questions]
        assert [one.answers[0][0] for one in dataset.questions] == [one.answers[0][0] for one in plain.questions]


def test_answers_elsewhere_are_looked_for_and_lost_ones_left_out(tmp_path):
    rows = [{"context": "Ada met Bo. Bo met Cyd.", "question": "Who?", "answers": [{"text": text, "answer_start": at}]}
            for text, at in (("Bo", 13), ("bo", 1), ("Zoe", 0), ("Cyd", 19))]  # fmt: skip
    (tmp_path / "moved.json").write_text(json.dumps(rows))
    found = read_questions(tmp_path / "moved.json", Reading())
    assert found is not None
    assert [one.answers for one in found.questions] == [(("Bo", 12),), (("Bo", 8),), (("Cyd", 19),)]
    assert [finding.text for finding in found.findings] == [
        "2 answers are elsewhere in the text than the file says, and taken where they are.",
        "1 question has an answer that is not in its text, and is left out.",
    ]
    assert found.sentence == "moved.json is read as 3 questions about 1 text."


def test_bad_files_meet_a_sentence(answers, tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    for text, call in (
        ("x.csv holds no questions about texts: give JSON with a question and a context, or a table with both columns.",
         lambda: answers.predict(tmp_path / "x.csv")),
        ("questions has no answers to compare with.", lambda: answers.evaluate([("Who?", "Ada.")])),
        ("questions has no text for question 1: every question needs the text that answers it.", lambda: answers.predict([("Who?", " ")])),
    ):  # fmt: skip
        with pytest.raises(WonderlandError, match="^" + re.escape(text) + "$"):
            call()
