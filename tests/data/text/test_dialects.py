"""Shapes of files from outside: fastText, quotes of other kinds, comments, broken lines, columns about the row, JSON of any name, lists."""

import csv
import io
import json
from typing import Any

import numpy as np
import pytest

from wonderland import kinds
from wonderland.core import WonderlandError
from wonderland.data.reading import Reading
from wonderland.data.text.layouts import read_text_table

WORDS = [
    "the",
    "film",
    "was",
    "good",
    "and",
    "we",
    "saw",
    "it",
    "on",
    "a",
    "rainy",
    "day",
    "in",
    "town",
    "with",
    "friends",
    "who",
    "did",
    "not",
    "like",
]
TEXTS = [" ".join(np.random.default_rng(i).choice(WORDS, 9)) + f" number {i}" for i in range(120)]
MOODS = [("pos", "neg")[i % 3 == 0] for i in range(120)]


def opened(folder, text, name="a.txt", **options) -> Any:
    (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return kinds.open(folder / name, **options)


def answers(data):
    if data.y.ndim == 2:
        return [sorted(data.classes[j] for j in np.flatnonzero(row)) for row in data.y]
    return [data.classes[code] for code in data.y]


def written(rows, **how):
    buffer = io.StringIO(newline="")
    csv.writer(buffer, lineterminator="\n", **how).writerows(rows)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "line", ["__label__{} , {} , and more\n", "__label__{} {}, and more\n", "{1} , and more __label__{0}\n"]
)
def test_lines_of_fasttext(tmp_path, line):
    data = opened(
        tmp_path, "".join(line.format(mood, text) for mood, text in zip(MOODS, TEXTS, strict=True)), "a.train"
    )
    assert (data.kind, answers(data)) == ("text", MOODS)


def test_several_labels_of_fasttext(tmp_path):
    lists = [["art"], ["art", "war"], ["war"]] * 40
    lines = [
        " ".join("__label__" + name for name in names) + f" {text}\n" for names, text in zip(lists, TEXTS, strict=True)
    ]
    assert answers(opened(tmp_path, "".join(lines))) == lists


@pytest.mark.parametrize(
    "how",
    [
        {"quoting": csv.QUOTE_ALL},
        {"quoting": csv.QUOTE_ALL, "delimiter": "\t"},
        {"quotechar": "'", "delimiter": ";"},
        {"doublequote": False, "escapechar": "\\", "quoting": csv.QUOTE_ALL},
    ],
)
@pytest.mark.parametrize("comment", ["", "# exported in May\n"])
def test_quotes_of_every_kind(tmp_path, how, comment):
    tails = ["", '; it\'s "so", he said', ", and", '; a "word"', " it's"]
    rows = [(text + tails[i % 5], mood) for i, (text, mood) in enumerate(zip(TEXTS, MOODS, strict=True))]
    data = opened(tmp_path, comment + written(rows, **how), "a.dat")
    assert (data.kind, answers(data)) == ("text", MOODS)
    assert data.cells[3] == (rows[3][0],)


def test_a_broken_line_is_named(tmp_path):
    lines = [f"{mood}\t{text}\n" for mood, text in zip(MOODS, TEXTS, strict=True)]
    lines.insert(50, "a line without its label\n")
    with pytest.raises(WonderlandError) as error:
        opened(tmp_path, "".join(lines), "a.all")
    assert str(error.value) == (
        f"{tmp_path / 'a.all'}: line 51 has 1 cell where 2 are expected (cells separated by tab). Complete the line or leave it out, "
        "quote cells that hold the delimiter, or say how the file is written with --delimiter and --quote."
    )


def test_columns_about_the_row_are_left_out(tmp_path):
    rows = [
        (mood, f"{1467810369 + i}", "Mon Apr 06 22:19:45 PDT 2009", "NO_QUERY", f"user{i % 60}", text)
        for i, (mood, text) in enumerate(zip(MOODS, TEXTS, strict=True))
    ]
    data = opened(tmp_path, written(rows, quoting=csv.QUOTE_ALL), "tweets.csv")
    assert (data.names, answers(data)) == (("c5",), MOODS)
    records = [{"date": f"2024-05-{1 + i % 28:02d}", "text": text, "label": mood} for i, (mood, text) in enumerate(zip(MOODS, TEXTS, strict=True))]  # fmt: skip
    data = opened(tmp_path, json.dumps(records), "a.json")
    assert (data.kind, data.names, answers(data)) == ("text", ("text",), MOODS)


def test_titles_of_few_words_beside_texts(tmp_path):
    rows = [
        (mood, " ".join(text.split()[: 1 + i % 3]) + f" {i}", text)
        for i, (mood, text) in enumerate(zip(MOODS, TEXTS, strict=True))
    ]
    data = opened(tmp_path, written(rows), "a.csv")
    assert (data.names, answers(data)) == (("c1", "c2"), MOODS)


@pytest.mark.parametrize("name", ["a.txt", "a", "a.train", "a.json"])
@pytest.mark.parametrize("shape", ["list", "lines", "wrapped"])
def test_json_whatever_its_name(tmp_path, name, shape):
    records = [{"text": text, "label": mood} for text, mood in zip(TEXTS, MOODS, strict=True)]
    text = {"list": json.dumps(records), "lines": "\n".join(map(json.dumps, records)), "wrapped": json.dumps({"version": "1", "data": records})}[shape]  # fmt: skip
    data = opened(tmp_path, text, name)
    assert (data.kind, answers(data)) == ("text", MOODS)


LISTS = [["art"], ["art", "war"], ["war"], ["sport", "war"], ["art", "sport"]] * 24


@pytest.mark.parametrize("form", ["json", "semicolons", "commas", "python", "numbers"])
def test_lists_of_labels(tmp_path, form):
    if form == "json":
        text = json.dumps([{"text": text, "labels": names} for text, names in zip(TEXTS, LISTS, strict=True)])
        assert answers(opened(tmp_path, text, "a.json")) == LISTS
        return
    cell = {"semicolons": "; ".join, "commas": ", ".join, "python": str, "numbers": ",".join}[form]
    lists = [[str(7 + len(name)) for name in names] for names in LISTS] if form == "numbers" else LISTS
    rows = [("text", "tags"), *((text, cell(names)) for text, names in zip(TEXTS, lists, strict=True))]
    if form == "numbers":
        with pytest.raises(WonderlandError, match="may be two labels, or a number with a decimal comma"):
            opened(tmp_path, written(rows), "a.csv")
        assert answers(opened(tmp_path, written(rows), "a.csv", task="multilabel"))[1] == ["10"]
        return
    assert answers(opened(tmp_path, written(rows), "a.csv")) == LISTS


def test_a_comma_in_the_name_of_a_class_is_no_list(tmp_path):
    names = [("Arts, culture", "Sport", "World, politics")[i % 3] for i in range(120)]
    rows = list(zip(TEXTS, names, strict=True))
    assert answers(opened(tmp_path, written(rows), "a.csv")) == names


def test_decimal_commas_are_numbers(tmp_path):
    rows = [(text, f"{i % 7},{i % 10}{i % 3}") for i, text in enumerate(TEXTS)]
    data = opened(tmp_path, written(rows, delimiter=";"), "a.csv")
    assert data.y[1] == 1.11


def test_a_class_called_none(tmp_path):
    names = [("none", "for", "against")[i % 3] for i in range(120)]
    data = opened(tmp_path, written(zip(TEXTS, names, strict=True)), "a.csv")
    assert answers(data) == names
    assert "'none' is one of the 3 classes of 'c1' (40 rows): leave cells empty where the class is not known." in [
        finding.text for finding in data.findings
    ]


def test_files_of_one_class_each(tmp_path):
    for name, mood in (("rt-polarity.pos", "pos"), ("rt-polarity.neg", "neg")):
        lines = [text + " café" for text, own in zip(TEXTS, MOODS, strict=True) if own == mood]
        (tmp_path / name).write_bytes("\n".join(lines).encode("latin-1"))
    data = kinds.open(tmp_path)
    assert (data.kind, data.classes, len(data)) == ("text", ["neg", "pos"], 120)


def test_a_longer_delimiter_wins_over_a_part_of_it(tmp_path):
    text = "".join(f"{text}|||{mood}\n" for text, mood in zip(TEXTS, MOODS, strict=True))
    assert answers(opened(tmp_path, text, "a.dat")) == MOODS


def test_a_text_may_end_with_the_sign_of_its_delimiter(tmp_path):
    rows = [(text + ":" * (i % 9 == 0), mood) for i, (text, mood) in enumerate(zip(TEXTS, MOODS, strict=True))]
    data = opened(tmp_path, "".join(f"{text}::{mood}\n" for text, mood in rows), "a.dat")
    assert (answers(data), data.cells[0]) == (MOODS, (rows[0][0],))


def test_texts_without_spaces(tmp_path):
    text = "".join(f"这部电影非常好看我很喜欢它的故事{i}号\t{mood}\n" for i, mood in enumerate(MOODS))
    (tmp_path / "a.txt").write_text(text, encoding="utf-16")
    found = read_text_table(tmp_path / "a.txt", Reading())
    assert found is not None
    assert list(found.frame["c1"]) == MOODS
    rows = [(f"这部电影非常好看{i}", f"音乐优美但是剧情拖沓{i}号", mood) for i, mood in enumerate(MOODS)]
    assert opened(tmp_path, written([("title", "body", "mood"), *rows]), "b.csv").names == ("title", "body")


def test_labels_in_single_quotes(tmp_path):
    lines = [f"{text}\t'[''{mood}'', ''x'']'\n" for text, mood in zip(TEXTS, MOODS, strict=True)]
    data = opened(tmp_path, "".join(lines), "a.data")
    assert answers(data) == [[mood, "x"] for mood in MOODS]


def test_short_messages(tmp_path):
    rows = [(" ".join(text.split()[: 1 + i % 2]) + f" no{i}", f"{i % 17}.{i % 9}") for i, text in enumerate(TEXTS)]
    data = opened(tmp_path, written([("review", "score"), *rows], delimiter="\t", quoting=csv.QUOTE_ALL), "a.text")
    assert (data.kind, data.y[3]) == ("text", 3.3)
