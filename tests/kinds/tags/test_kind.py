"""fit for words with tags: layouts of files, prediction of tags in every form, comparison with the usual tag of each word."""

import json
import random
import re
from pathlib import Path

import pytest

import wonderland
from tests.kinds.battery import Battery, data, home, run  # noqa: F401 - fixtures
from wonderland.core import WonderlandError
from wonderland.data.reading import Reading
from wonderland.data.text.marked import split_words
from wonderland.data.text.tagged import cuts, read_tagged
from wonderland.kinds import open as open_data

NAMES = {"PER": ["Ada", "Bo", "Cyd Li"], "LOC": ["Ulm", "Bonn", "New York"], "ORG": ["Acme", "Zeta Inc"]}
FRAMES = ["PER lives in LOC .", "ORG hired PER .", "PER of ORG saw LOC today", "in LOC it rains"]


def sentence(draw: random.Random) -> list[tuple[str, str]]:
    rows = []
    for word in draw.choice(FRAMES).split():
        for i, piece in enumerate(draw.choice(NAMES[word]).split() if word in NAMES else [word]):
            rows.append((piece, f"{'I' if i else 'B'}-{word}" if word in NAMES else "O"))
    return rows


def conll(path: Path, count: int, seed: int, line="{0} X {1}", lead="") -> Path:
    draw = random.Random(seed)
    rows = [sentence(draw) for _ in range(count)]
    path.write_text(
        lead + "\n".join("".join(line.format(*row) + "\n" for row in own) for own in rows), encoding="utf-8"
    )
    return path


class TestTags(Battery):
    kind = "tags"

    def make(self, folder: Path):
        return conll(folder / "words.conll", 120, 0), conll(folder / "new.conll", 30, 1)


@pytest.fixture(scope="module")
def tagger(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tagger")
    return wonderland.fit(conll(folder / "words.txt", 150, 0), out=folder / "run", steps=60, threads=1)


def test_tags_behind_their_words(tmp_path):
    draw = random.Random(3)
    rows = [sentence(draw) for _ in range(40)]
    text = "".join(" ".join(f"{word}/{tag}" for word, tag in row) + "\n" for row in rows)
    (tmp_path / "brown.txt").write_text(text.replace("Acme/", "Acme/1/"))
    found = open_data(tmp_path / "brown.txt")
    assert found.kind == "tags"
    assert found.findings[0].text == (
        "brown.txt is read as 40 sentences, one in each line, with the tag of each word behind '/'. Options overrule it: --encoding, --kind."
    )
    words = " ".join(word for word, _ in rows[0]).replace("Acme", "Acme/1")
    assert found.example(0) == {"words": words, "tags": " ".join(tag for _, tag in rows[0])}


def read(path: Path, **options):
    found = read_tagged(path, Reading(), **options)
    assert found is not None
    assert found.tags is not None
    return found


def test_layouts_of_columns(tmp_path):
    plain = read(conll(tmp_path / "a.txt", 40, 0))
    assert plain.sentence.startswith(
        "a.txt is read as 40 sentences of words in column 1 with tags in column 3 of 3; columns 2 are not used."
    )
    begun = read(conll(tmp_path / "b.txt", 40, 0, lead="-DOCSTART- -X- O\n\n"))
    german = read(conll(tmp_path / "c.tsv", 40, 0, line="7\t{0}\t{1}", lead="#\thttp://x [2009]\n"))
    tabs = read(conll(tmp_path / "d.iob", 40, 0, line="{0}\t{1}"))
    for other in (begun, german, tabs):
        assert (other.words, other.tags) == (plain.words, plain.tags)
    universal = read(
        conll(tmp_path / "e.conllu", 40, 0, line="1\t{0}\t_\t{1}\t_\t_\t0\t_\t_\t_", lead="# sent_id = 1\n")
    )
    assert universal.tags == plain.tags
    assert read(tmp_path / "a.txt", target="2").tags[0][0] == "X"
    with pytest.raises(WonderlandError, match="columns without names, 1 to 3: give target as one of them, not '9'"):
        read(tmp_path / "a.txt", target="9")


def test_layouts_of_tables_and_json(tmp_path):
    rows = [sentence(random.Random(i)) for i in range(30)]
    lines = ["Sentence #,Word,POS,Tag"]
    for i, own in enumerate(rows):
        lines += [f"{f'Sentence: {i + 1}' if not j else ''},{word},NN,{tag}" for j, (word, tag) in enumerate(own)]
    (tmp_path / "ner.csv").write_text("\n".join(lines))
    table = read(tmp_path / "ner.csv")
    assert table.tags == [[tag for _, tag in own] for own in rows]
    tokens = [
        {"id": i, "tokens": [word for word, _ in own], "ner_tags": [tag for _, tag in own]}
        for i, own in enumerate(rows)
    ]
    (tmp_path / "tokens.jsonl").write_text("\n".join(map(json.dumps, tokens)))
    assert read(tmp_path / "tokens.jsonl").tags == table.tags
    (tmp_path / "tokens.json").write_text(json.dumps({"data": tokens}))
    assert read(tmp_path / "tokens.json").tags == table.tags
    tokens[3]["ner_tags"].append("O")
    (tmp_path / "odd.jsonl").write_text("\n".join(map(json.dumps, tokens)))
    with pytest.raises(WonderlandError, match="in record 4: each token needs one tag"):
        read(tmp_path / "odd.jsonl")


@pytest.mark.parametrize("form", ["objects", "triples", "offsets"])
def test_spans_of_running_text(tmp_path, form):
    text = "Ada Li, of Zeta-Inc, is here."
    marks = [(0, 6, "PER"), (11, 15, "ORG"), (0, 3, "PER"), (90, 99, "PER")]
    shown = {
        "objects": ("spans", [{"start": a, "end": b, "label": n} for a, b, n in marks]),
        "triples": ("entities", [list(mark) for mark in marks]),
        "offsets": ("label", [{"start_offset": a, "end_offset": b, "label": n} for a, b, n in marks]),
    }[form]
    path = tmp_path / "spans.jsonl"
    path.write_text("\n".join(json.dumps({"text": text, shown[0]: shown[1]}) for _ in range(3)))
    found = read(path)
    assert found.words[0] == ["Ada", "Li", ",", "of", "Zeta-Inc", ",", "is", "here", "."]
    assert found.tags[0] == ["B-PER", "I-PER", "O", "O", "B-ORG", "O", "O", "O", "O"]
    assert [finding.kind for finding in found.findings] == ["moved", "overlap", "outside"]
    assert found.findings[0].text == "3 of the spans cut a word and are extended to the whole of it."


def test_other_files_are_none_of_ours(tmp_path):
    (tmp_path / "prose.txt").write_text(
        "It was late.\nThe rain fell.\n\nNobody came.\nThe end of it.\n\nWe went home.\n"
    )
    (tmp_path / "labels.jsonl").write_text(
        "\n".join(json.dumps({"text": "a b", "labels": ["x", "y"]}) for _ in range(9))
    )
    (tmp_path / "table.csv").write_text("a,b\n1,2\n3,4\n")
    for name in ("prose.txt", "labels.jsonl", "table.csv"):
        assert read_tagged(tmp_path / name, Reading()) is None


def test_long_texts_are_cut_after_a_full_stop():
    words = (["w"] * 149 + ["."]) * 3
    assert list(cuts(words)) == [(0, 150), (150, 300), (300, 450)]


def test_it_learns_and_says_what_it_is_worth(tagger):
    assert tagger.metrics["f1"] > 0.9
    board = json.loads((tagger.folder / "leaderboard.json").read_text())
    assert board["rows"][1]["name"] == "most frequent tag of each word"
    page = (tagger.folder / "report.html").read_text()
    assert "Spans by name" in page
    assert "Sentences with the most mistakes" in page or tagger.metrics["accuracy"] == 1


def test_predictions_are_written_as_columns_and_as_spans(tagger, tmp_path):
    texts = ["Cyd Li lives in New York.", "", "Acme hired Ada."]
    table = tagger.predict(texts, tagged=str(tmp_path / "out.jsonl"))
    assert table["word"].tolist() == [text[a:b] for text in texts for a, b in split_words(text)]
    written = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["text"] for row in written] == [texts[0], texts[2]]
    spans = {written[0]["text"][span["start"] : span["end"]]: span["label"] for span in written[0]["spans"]}
    assert spans == {"Cyd Li": "PER", "New York": "LOC"}
    (tmp_path / "new.txt").write_text("\n".join(texts))
    again = tagger.predict(tmp_path / "new.txt", tagged=str(tmp_path / "out.conll"))
    assert again.equals(table)
    assert read(tmp_path / "out.conll", known=tagger.classes).tags[0] == table["prediction"][:7].tolist()
    assert tagger.predict([["Ada", "saw", "Ulm"]])["sentence"].tolist() == [1, 1, 1]
    refused = "Tagged words are written as .conll, .iob, .bio, .tsv, .txt, .jsonl, .ndjson, not .doc."
    with pytest.raises(WonderlandError, match="^" + re.escape(refused) + "$"):
        tagger.predict(texts, tagged="out.doc")


def test_bad_files_meet_a_sentence(tagger, tmp_path):
    for text, call in (
        ("texts holds no words.", lambda: tagger.predict(["", " "])),
        ("texts has no tags to compare with: give words with their tags, as the training data has them.", lambda: tagger.evaluate(["Ada"])),
        ("other.conll has the tag 'B-GPE', which this model does not know. Did you mean 'B-PER' or 'I-PER' or 'B-ORG'?",
         lambda: tagger.evaluate(_with(conll(tmp_path / "other.conll", 30, 2), "B-LOC", "B-GPE"))),
    ):  # fmt: skip
        with pytest.raises(WonderlandError, match="^" + re.escape(text) + "$"):
            call()


def _with(path: Path, old: str, new: str) -> Path:
    path.write_text(path.read_text().replace(old, new))
    return path


def test_a_test_file_of_its_own(tmp_path):
    dataset = open_data(conll(tmp_path / "a.conll", 30, 0), test=conll(tmp_path / "b.conll", 10, 1))
    assert dataset.test_rows is not None
    assert dataset.test_rows.tolist() == [False] * 30 + [True] * 10
