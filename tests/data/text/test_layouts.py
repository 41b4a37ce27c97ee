"""Careless files: every combination of delimiter, quotes, header, order, encoding, ending and kind of target is read right or refused."""

import csv
import io
import re

import numpy as np
import pytest

from wonderland import kinds
from wonderland.core import WonderlandError, mix
from wonderland.data.reading import Reading
from wonderland.data.text.layouts import read_text_table

WORDS = ["the", "quick", "brown", "fox", "jumps", "over", "a", "lazy", "dog", "near", "one", "river", "while", "people", "watch", "from", "green", "hills", "and", "talk", "about", "rain", "food", "music", "and", "old", "stories", "that", "nobody", "has", "heard", "before"]  # fmt: skip
SIGNS = ("", ",", ";", " - so", " it's", ' "quoted" words', ', "and', ' "', " café", " 100 %", " a | b", "?", ": yes")
LABELS = {
    "words": ["ham", "spam"],
    "numbers": ["1", "2", "3", "4"],
    "signed": ["-1", "1"],
    "names": ["World News", "Sport", "Science & Tech"],
}
DELIMITERS = ("\t", ",", ";", "|", " ", "@")
SUFFIXES = (".csv", ".tsv", ".txt", ".all", ".train", ".data", "", ".dat", ".label")


def careless(seed):
    """A file of texts and answers as somebody might leave it: its bytes, its ending, the right answers and the texts."""
    random = np.random.default_rng(seed)
    pick = lambda options: options[int(random.integers(len(options)))]  # noqa: E731
    rows, delimiter = int(random.integers(24, 90)), pick(DELIMITERS)
    target = pick([*LABELS, "score"])
    answers = [f"{random.normal():.3f}" if target == "score" else pick(LABELS[target]) for _ in range(rows)]
    if random.random() < 0.3:
        answers.sort()
    columns = 1 if delimiter in " @" else int(random.integers(1, 3))
    sentence = lambda: " ".join(pick(WORDS) for _ in range(int(random.integers(4, 14)))) + pick(SIGNS)  # noqa: E731
    texts = [[sentence() for _ in range(columns)] for _ in range(rows)]
    first, header = bool(random.integers(2)), bool(random.integers(2)) and delimiter not in " @"
    if delimiter == " ":
        target = "signed"
        answers = [pick(LABELS[target]) for _ in range(rows)]
        first = True
    quoting = pick(["minimal", "all", "never"]) if delimiter not in " @\t" else "never"
    if quoting == "never":
        texts = [[cell.replace(delimiter, " ") if delimiter != " " else cell for cell in row] for row in texts]
    cells = [[answer, *row] if first else [*row, answer] for answer, row in zip(answers, texts, strict=True)]
    if header:
        names = ["text", "body"][:columns]
        cells.insert(0, ["label", *names] if first else [*names, "label"])
    end = pick(["\n", "\r\n"])
    if quoting == "never":
        text = "".join(delimiter.join(row) + end for row in cells)
    else:
        buffer = io.StringIO(newline="")
        rule = csv.QUOTE_ALL if quoting == "all" else csv.QUOTE_MINIMAL
        csv.writer(buffer, delimiter=delimiter, quoting=rule, lineterminator=end).writerows(cells)
        text = buffer.getvalue()
    encoding = pick(["utf-8", "utf-8-sig", "cp1252"])
    return text.encode(encoding), pick(SUFFIXES), answers, texts


def reads_or_refuses(folder, seed):
    """None where the file is read right, the message where it is refused; an assertion where it is misread."""
    data, suffix, answers, texts = careless(seed)
    path = folder / f"file{seed}{suffix}"
    path.write_bytes(data)
    try:
        found = kinds.open(path)
    except WonderlandError as error:
        return str(error)
    told = f"seed {seed}: {[finding.text for finding in found.findings]}"
    if found.kind != "text":
        return f"read as {found.kind}: {told}"  # said aloud in the first line of the output
    assert len(found) == len(answers), told
    given = [f"{y:.3f}" for y in found.y] if found.classes is None else [found.classes[y] for y in found.y]
    assert given == answers, told
    clean = lambda cell: re.sub(r"\W+", "", cell)  # noqa: E731
    assert [[clean(cell) for cell in row] for row in found.cells] == [[clean(cell) for cell in row] for row in texts], (
        told
    )
    return None


@pytest.mark.parametrize("first", [0])
def test_careless_files_are_read_right_or_refused(tmp_path, first):
    refused = [message for seed in range(first, first + 60) if (message := reads_or_refuses(tmp_path, seed))]
    assert len(refused) <= 6, refused
    for message in refused:
        assert "--" in message or message.startswith("read as"), message


@pytest.mark.slow
def test_a_thousand_careless_files(tmp_path):
    refused = [message for seed in range(1000, 2000) if (message := reads_or_refuses(tmp_path, mix(seed)))]
    assert len(refused) <= 100, refused[:20]


def table(folder, text, name="a.txt", encoding="utf-8", **options):
    (folder / name).write_bytes(text.encode(encoding))
    return read_text_table(folder / name, Reading(), **options)


SENTENCES = [f"{WORDS[i % 20]} {WORDS[i % 13]} sees number {i} today" for i in range(80)]


def test_a_file_sorted_by_class_is_looked_at_to_its_end(tmp_path):
    text = "".join(f"{int(i >= 4000)} {SENTENCES[i % 80]} and so on, {i} times\n" for i in range(8000))
    assert len(text) > 2 << 17
    found = table(tmp_path, text, "polarity.all")
    assert found is not None
    assert (found.frame["label"].sum(), len(found.frame)) == (4000, 8000)
    assert kinds.open(tmp_path / "polarity.all").classes == ["0", "1"]


def test_lone_quotes_do_not_swallow_lines(tmp_path):
    lines = [
        f"{'spam' if i % 3 else 'ham'}\t{chr(34) if i % 10 == 0 else ''}{text}" for i, text in enumerate(SENTENCES)
    ]
    found = table(tmp_path, "\n".join(lines))
    assert found is not None
    assert len(found.frame) == 80


def test_two_readings_stop_and_name_the_option(tmp_path):
    lines = [
        f"{'ab'[i % 2]}, {text}, {'xy'[i % 3 > 0]}, {'more' if i % 5 else 'of, it'}, {'xy'[i % 2]}"
        for i, text in enumerate(SENTENCES)
    ]
    with pytest.raises(WonderlandError) as error:
        table(tmp_path, "\n".join(lines))
    assert str(error.value) == (
        f"{tmp_path / 'a.txt'} could be read in two ways: each line cut at its first comma (target 'c0', for instance 'a'), or each "
        "line cut at its last comma (target 'c1', for instance 'x'). Say which with --target c0 or --target c1."
    )
    found = table(tmp_path, "\n".join(lines), target="c0")
    assert found is not None
    assert set(found.frame["c0"]) == {"a", "b"}


def test_what_was_read_is_said_in_one_sentence(tmp_path):
    text = "v1,v2,,\n" + "".join(f'{"ham" if i % 3 else "spam"},"{line} café",,\n' for i, line in enumerate(SENTENCES))
    found = table(tmp_path, text, "spam.csv", "cp1252")
    assert found is not None
    assert found.sentence == (
        "spam.csv is read as 80 rows: cells separated by comma, the first line holds names; 'v2' is the text and 'v1' is the target. "
        "Options overrule it: --delimiter, --quote, --encoding, --target, --column, --kind."
    )
    assert [finding.text for finding in found.findings] == [
        "spam.csv is not UTF-8; it is read as Windows-1252 (Western European). If letters look wrong, name the encoding (--encoding).",
        "Columns 'column_2', 'column_3' are empty, always the same or about the row (identifiers, dates, addresses, authors), and left out.",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"The fox {line}\n" if i % 2 else f"A hare {line}\n" for i, line in enumerate(SENTENCES)),  # prose
        "a,b\n" + "".join(f"{i},{i % 3}\n" for i in range(50)),  # numbers
        "".join(f"{line}\t{line} too\n" for line in SENTENCES),  # pairs
        '{"a": 1}\n' * 30,
        "",
        "one line of text",
    ],
)  # fmt: skip
def test_other_files_are_left_to_other_kinds(tmp_path, text):
    assert table(tmp_path, text) is None
