"""fit for texts with classes: tables, JSON lines, labelled lines, folders; prediction on each; refusals."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import wonderland
from tests.texts import labelled, topics
from wonderland import kinds
from wonderland.core import WonderlandError


def told(dataset):
    return [finding.text for finding in dataset.findings]


def refuses(text, call):
    with pytest.raises(WonderlandError, match="^" + re.escape(text) + "$"):
        call()


def test_a_table_of_texts_is_learned_and_trusted():
    run = topics()
    assert run.metrics["accuracy"] > 0.9
    assert run.classes == ["animals", "food", "weather"]
    assert any("'text' is the text and 'label' is the target" in text for text in run.findings)
    table = wonderland.load(run.folder).predict(["the fox was here", "bread and soup", ""])
    assert table["prediction"].tolist()[:2] == ["animals", "food"]
    assert table.columns.tolist()[:4] == ["text", "prediction", "probability", "set"]
    assert table["text"].tolist() == ["the fox was here", "bread and soup", ""]
    assert "p(animals)" in table
    assert run.record["measured"]["test"]["conformal"]["coverage"] > 0.75


def test_new_texts_come_in_every_form(tmp_path):
    run = topics()
    pairs = labelled(40, seed=1)
    truth = [label for label, _ in pairs]
    (tmp_path / "a.csv").write_text("label,text\n" + "".join(f"{label},{text}\n" for label, text in pairs))
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for _, text in pairs))
    (tmp_path / "a.txt").write_text("".join(text + "\n" for _, text in pairs))
    for label in set(truth):
        (tmp_path / "folders" / label).mkdir(parents=True)
    for i, (label, text) in enumerate(pairs):
        (tmp_path / "folders" / label / f"{i:03d}.txt").write_text(text)
    expected = run.predict([text for _, text in pairs])["prediction"].tolist()
    for name in ("a.csv", "a.jsonl", "a.txt"):
        assert run.predict(tmp_path / name)["prediction"].tolist() == expected, name
    assert run.predict(pd.DataFrame({"text": [text for _, text in pairs]}))["prediction"].tolist() == expected
    right = np.mean([a == b for a, b in zip(expected, truth, strict=True)])
    assert run.evaluate(tmp_path / "a.csv")["metrics"]["accuracy"] == pytest.approx(right)
    assert run.evaluate(tmp_path / "folders")["metrics"]["accuracy"] == pytest.approx(right)
    refuses("a.jsonl has no classes to compare with: give a table with the column 'label', or class folders.",
            lambda: run.evaluate(tmp_path / "a.jsonl"))  # fmt: skip
    refuses("texts holds no texts.", lambda: run.predict([]))
    holes = pd.DataFrame({"text": [text for _, text in pairs] + ["more"], "label": [*truth, None]})
    assert run.evaluate(holes)["metrics"]["accuracy"] == pytest.approx(right)
    assert [finding.text for finding in run._noticed][:1] == ["1 of 41 rows has no target 'label' and is left out."]
    refuses("frame has no classes to compare with: its column 'label' is empty.",
            lambda: run.evaluate(holes.assign(label=None)))  # fmt: skip
    (tmp_path / "b.csv").write_text("label,txt\nfood,bread\n")
    refuses("b.csv has no column 'text', which holds the texts this model reads. Did you mean 'txt'?",
            lambda: run.predict(tmp_path / "b.csv"))  # fmt: skip
    (tmp_path / "b.csv").write_text("label,text\nfoods,bread and soup\n")
    refuses("b.csv has the class 'foods', which this model does not know. Did you mean 'food'?",
            lambda: run.evaluate(tmp_path / "b.csv"))  # fmt: skip


def test_which_sources_are_read_as_texts(tmp_path):
    pairs = labelled(60)

    def kind_of(name, text, **named):
        (tmp_path / name).write_text(text)
        return kinds.open(tmp_path / name, **named).kind

    assert kind_of("a.csv", "text,label\n" + "".join(f"{text},{label}\n" for label, text in pairs)) == "text"
    assert (
        kind_of("b.csv", "n,label\n" + "".join(f"{i % 7},{label}\n" for i, (label, _) in enumerate(pairs))) == "table"
    )
    mixed = "text,n,label\n" + "".join(f"{text},{i % 7},{label}\n" for i, (label, text) in enumerate(pairs))
    assert kind_of("c.csv", mixed, keep=["text"]) == "table"
    assert kind_of("c.csv", mixed, kind="text", target="label") == "text"
    assert kind_of("a.csv", (tmp_path / "a.csv").read_text(), kind="table", keep=["text"], target="label") == "table"
    assert kind_of("d.txt", "".join(f"__label__{label} {text}\n" for label, text in pairs)) == "text"
    assert kind_of("e.txt", "".join(f"{i % 3} {text}\n" for i, (_, text) in enumerate(pairs))) == "text"
    assert kind_of("f.txt", "\n".join(text for _, text in pairs)) == "corpus"
    assert kind_of("g.txt", "a,b\n" + "1,2\n3,2\n5,4\n1,4\n" * 30) == "table"
    assert kind_of("h.txt", "a b\n" + "1 2\n3 2\n5 4\n1 4\n" * 30) == "table"
    assert kind_of("i.txt", "One line, with a comma, and no end") == "corpus"
    assert kind_of("j.txt", "漢字的文字。" * 50) == "corpus"
    assert kind_of("k.md", "# Title\n\nSome words, some more.\n" * 9) == "corpus"
    sentences = [f"{text}, and number {i}" for i, (_, text) in enumerate(pairs)]
    assert kind_of("l.jsonl", "".join(json.dumps({"story": text}) + "\n" for text in sentences)) == "corpus"
    assert kinds.open(tmp_path / "l.jsonl").count == 60
    assert kind_of("o.jsonl", '{"text": "one and the same"}\n' * 60) == "corpus"
    assert kind_of("m.csv", "text\n" + "".join(f'"{text}"\n' for text in sentences)) == "corpus"
    for label in ("x", "y"):
        (tmp_path / "folder" / label).mkdir(parents=True)
        (tmp_path / "folder" / label / "1.txt").write_text(f"some words of {label}")
    assert kinds.open(tmp_path / "folder").kind == "text"
    assert kinds.open(tmp_path / "folder" / "x").kind == "corpus"


def test_token_options_of_texts(tmp_path):
    (tmp_path / "a.csv").write_text("text,label\n" + "".join(f"{text},{label}\n" for label, text in labelled(120)))
    run = wonderland.fit(tmp_path / "a.csv", out=tmp_path / "run", steps=2, tokens="bpe", vocab=270, context=5)
    assert (run.encoder.tokenizer.kind, run.encoder.tokenizer.vocab, run.encoder.length) == ("bpe", 270, 5)
    refuses("Tokens of kind 'unigram' are learned a little differently each time, so a run could not be repeated: "
            "take characters, words or bpe.", lambda: wonderland.fit(tmp_path / "a.csv", out=tmp_path / "other", tokens="unigram"))  # fmt: skip
    refuses("vocab is an option of text, corpus and pairs, and iris is read as table: leave it out, or name another kind "
            "with kind (--kind).", lambda: wonderland.fit("iris", out=tmp_path / "other", vocab=300))  # fmt: skip


def test_findings_and_strict(tmp_path):
    rows = [{"label": "a" if i % 2 else "b", "text": f"the {i} words of a text" if i else None} for i in range(30)]
    pd.DataFrame(rows).to_json(tmp_path / "a.jsonl", orient="records", lines=True)
    found = kinds.open(tmp_path / "a.jsonl")
    assert "1 row has no text and read as an empty one." in [finding.text for finding in found.findings]
    with pytest.raises(WonderlandError, match=r"^Strict mode stops here\. 1 row has no text"):
        kinds.open(tmp_path / "a.jsonl", strict=True)


def test_identifiers_do_not_make_a_table_of_texts(tmp_path):
    pairs = labelled(60)
    frame = pd.DataFrame(
        {
            "id": [f"row-{i}" for i in range(60)],
            "review": [text for _, text in pairs],
            "mood": [label for label, _ in pairs],
            "source": "web",
        }
    )
    left = "Columns 'id', 'source' are identifiers or always the same, and left out."
    found = kinds.open(frame)
    assert (found.column, found.target, found.classes) == ("review", "mood", sorted({label for label, _ in pairs}))
    assert left in told(found)
    assert kinds.open(frame.assign(stars=[i % 5 for i in range(60)])).kind == "table"
    pair = frame.assign(answer=[f"the answer to {text}" for _, text in pairs]).drop(columns="mood")
    found = kinds.open(pair)
    assert (found.kind, found.column_names) == ("pairs", ("review", "answer"))
    assert left in told(found)
    frame[["id", "review"]].to_csv(tmp_path / "only.csv", index=False)
    found = kinds.open(tmp_path / "only.csv")
    assert found.kind == "corpus"
    assert "Column 'id' is an identifier or always the same, and left out." in told(found)


def test_row_numbers_are_uninformative():
    pairs = labelled(60)
    frame = pd.DataFrame({"text": [text for _, text in pairs], "mood": [label for label, _ in pairs]})
    for name, cells in (("  ID #", [i * 7 % 61 for i in range(60)]), ("c0", range(1000, 1060))):
        found = kinds.open(frame.assign(**{name: cells}))
        assert (found.kind, found.column) == ("text", "text")
        assert f"Column {name!r} is an identifier or always the same, and left out." in told(found)


def test_classes_spelt_like_missing_values_give_a_finding():
    frame = pd.DataFrame({"text": [f"this is text {i}" for i in range(60)], "mood": ["a", "b", None] * 20})
    assert ("20 of 60 rows have no target 'mood' and are left out. Empty cells and words such as NA, None and ? count as missing: "
            "give a class of that name another one.") in told(kinds.open(frame))  # fmt: skip
    refuses("The target 'mood' has one class only ('b'), so there is nothing to learn. Choose another target. Empty cells and words "
            "such as NA, None and ? count as missing: give a class of that name another one.",
            lambda: kinds.open(frame.replace("a", None), target="mood"))  # fmt: skip


def test_findings_about_columns_are_kept(tmp_path):
    """Kept columns count, dropped ones are not spoken of, and groups and times are for tables."""
    pairs = labelled(60)
    frame = pd.DataFrame({"id": [f"row-{i}" for i in range(60)], "text": [text for _, text in pairs]})
    whole = frame.assign(mood=[label for label, _ in pairs])
    assert kinds.open(whole, keep=["id"]).kind == "table"
    found = kinds.open(whole, drop=["id"], strict=True)
    assert (found.kind, [line for line in told(found) if "left out" in line]) == ("text", [])
    assert kinds.open(whole, kind="text", column="text", target="mood", strict=True).kind == "text"
    with pytest.raises(
        WonderlandError, match=r"^Strict mode stops here\. Column 'id' is an identifier or always the same"
    ):
        kinds.open(whole, strict=True)
    wide = whole.assign(**{f"same{i}": "x" for i in range(6)})
    assert "'id', 'same0', 'same1', 'same2', 'same3' and 2 more are identifiers" in " ".join(told(kinds.open(wide)))
    frame.to_csv(tmp_path / "only.csv", index=False)
    for drop in (["id"], "id"):
        found = kinds.open(tmp_path / "only.csv", drop=drop)
        assert (found.kind, [line for line in told(found) if "left out" in line]) == ("corpus", [])
    refuses(
        "There is no column 'ids' (given as drop). Did you mean 'id'?",
        lambda: kinds.open(tmp_path / "only.csv", drop="ids"),
    )
    (tmp_path / "prose.txt").write_text("Just some prose.\nAnd more of it.\n")
    refuses("drop leaves out columns of a CSV or JSON lines file, and prose.txt is not one: leave it out.",
            lambda: kinds.open(tmp_path / "prose.txt", drop="id"))  # fmt: skip
    for options in ({"keep": ["id"]}, {"group": "id"}):
        with pytest.raises(WonderlandError):
            kinds.open(tmp_path / "only.csv", **options)


def test_numbers_may_be_classes_of_texts():
    frame = pd.DataFrame(
        {"text": [f"text {i} on a topic" for i in range(1000)], "topic": [i % 25 for i in range(1000)]}
    )
    assert kinds.open(frame, task="multiclass").task == "multiclass"
    assert kinds.open(frame).task == "regression"


def rated(rows=160, seed=0):
    """A rating that follows from one word of the text."""
    random = np.random.default_rng(seed)
    value = {"awful": 0.5, "poor": 2.25, "fine": 5.5, "great": 9.75}
    words = random.choice(list(value), rows)
    texts = [f"it was {word} {random.choice(['here', 'there'])} on day {i}" for i, word in enumerate(words)]
    return pd.DataFrame({"text": texts, "score": [value[word] + i % 7 / 10 for i, word in enumerate(words)]})


def test_a_number_for_each_text_is_predicted(tmp_path):
    assert (kinds.open(rated(60)).kind, kinds.open(rated(60)).task) == ("text", "regression")
    run = wonderland.fit(rated(), out=tmp_path / "run", epochs=3)
    assert run.metrics["r2"] > 0.9
    table = wonderland.load(run.folder).predict(["it was great here", "it was awful there"])
    assert table["prediction"][0] > table["prediction"][1] + 4
    assert run.evaluate(rated(40, seed=1))["metrics"]["r2"] > 0.9
    refuses("frame has 'much' in its column 'score', where a number is expected.",
            lambda: run.evaluate(rated(40).assign(score="much")))  # fmt: skip


def test_two_texts_a_row_are_compared(tmp_path):
    """Whether two sentences say the same: words alone do not tell, what they share does."""
    random = np.random.default_rng(0)
    things, rows = ["fox", "hare", "crow", "wolf", "goose", "bear", "owl", "mole"], []
    for i in range(400):
        first, other = random.permutation(things)[:2]
        second = first if i % 2 else other
        rows.append(
            (
                f"there was a {first} near day {i}",
                f"it must have been the {second} on day {i}",
                "same" if i % 2 else "other",
            )
        )
    frame = pd.DataFrame(rows, columns=["premise", "hypothesis", "label"])
    found = kinds.open(frame)
    assert (found.kind, found.names, found.target) == ("text", ("premise", "hypothesis"), "label")
    assert "400 pairs of sentences in 'premise' and 'hypothesis' with the answer in 'label'" in " ".join(told(found))
    run = wonderland.fit(frame, out=tmp_path / "run", model="TextLinear")
    assert run.metrics["accuracy"] > 0.9
    answers = run.predict(
        [
            [f"there was a fox near day {i}", f"it must have been the {other} on day {i}"]
            for i, other in ((5, "fox"), (6, "owl"))
        ]
    )
    assert answers["prediction"].tolist() == ["same", "other"]
    assert answers.columns.tolist()[:3] == ["premise", "hypothesis", "prediction"]


def test_models_of_texts_by_name(tmp_path):
    """The default holds a linear model and a network; either can be asked for alone, and reads its own fields."""
    frame = pd.DataFrame(labelled(200), columns=["label", "text"])
    both = wonderland.fit(frame, out=tmp_path / "both", epochs=2)
    assert both.recipe.model.name == "models.TextBlend"
    parts = both.record["measured"]["test"]["parts"]
    assert [part["name"] for part in parts] == ["linear model", "network"]
    assert sum(part["share"] for part in parts) == pytest.approx(1)
    assert parts[0]["metrics"]["accuracy"] > 0.9
    linear = wonderland.fit(frame, out=tmp_path / "linear", model="TextLinear", steps=500)
    assert (linear.recipe.steps, linear.encoder.reads, linear.metrics["accuracy"] > 0.9) == (1, "features", True)
    network = wonderland.fit(frame, out=tmp_path / "network", model="TextCNN(dim=16, channels=8)", steps=2)
    assert (network.encoder.reads, network.encoder.grams) == ("tokens", None)


def test_errors_to_the_word(tmp_path):
    (tmp_path / "n.csv").write_text("a,b\n1,2\n3,4\n")
    refuses(
        "No column holds text. Name it with the option column, or leave kind out.",
        lambda: kinds.open(tmp_path / "n.csv", kind="text"),
    )
    (tmp_path / "p.txt").write_text("Just some prose.\nAnd more of it.\n")
    refuses(f"{tmp_path / 'p.txt'} has no classes: begin each line with a label, or sort texts into class folders.",
            lambda: kinds.open(tmp_path / "p.txt", kind="text"))  # fmt: skip
    refuses(
        f"There is no kind 'txt'. Did you mean 'text'? Known are {', '.join(kinds.NAMES)}.",
        lambda: kinds.open(tmp_path / "p.txt", kind="txt"),
    )
    refuses("A corpus is read from a file or a folder: give its path.", lambda: kinds.open({"a": [1]}, kind="corpus"))
    (tmp_path / "empty.csv").write_text("label,text\n" + "a,\nb,\n" * 5)
    refuses("empty.csv has no text in column 'text': every text is empty.",
            lambda: kinds.open(tmp_path / "empty.csv", kind="text", column="text", target="label"))  # fmt: skip


def test_the_report_escapes_texts(tmp_path):
    pairs = labelled(90)
    nasty = "<script>alert(1)</script> the fox & the hare"
    rows = [(label, nasty if i % 9 == 0 else text) for i, (label, text) in enumerate(pairs)]
    pd.DataFrame(rows, columns=["label", "text"]).to_csv(tmp_path / "a.csv", index=False)
    run = wonderland.fit(tmp_path / "a.csv", out=tmp_path / "run", epochs=1)
    page = (run.folder / "report.html").read_text()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    for heading in ("Confusion matrix", "Most confident mistakes", "Importance", "Nearest neighbours"):
        assert heading in page, heading


def test_classes_that_are_spelt_nearly_alike_are_pointed_out():
    moods = ["positive"] * 60 + ["Positive"] * 5 + ["positve"] * 2 + ["negative"] * 50
    frame = pd.DataFrame({"text": [f"this is text number {i}" for i in range(len(moods))], "mood": moods})
    said = [text for text in told(kinds.open(frame, strict=True)) if "spelt" in text]
    assert said == [
        "The classes 'Positive' (5 rows) and 'positive' (60) of 'mood' are spelt nearly alike: if they are one, correct the file.",
        "The classes 'positve' (2 rows) and 'positive' (60) of 'mood' are spelt nearly alike: if they are one, correct the file.",
    ]


def test_several_labels_for_a_text_are_learned(tmp_path):
    random = np.random.default_rng(0)
    words = {"animals": "fox", "weather": "rain", "food": "bread"}
    chosen = [[topic for topic in words if random.random() < 0.5] for _ in range(240)]
    texts = [" ".join(["day", str(i), "with", *(words[topic] for topic in topics)]) for i, topics in enumerate(chosen)]
    frame = pd.DataFrame({"text": texts, "topics": [";".join(topics) for topics in chosen]})
    run = wonderland.fit(frame, "topics", out=tmp_path / "run", model="TextLinear")
    assert run.task.name == "multilabel"
    assert run.metrics["f1"] > 0.95
    found = wonderland.load(run.folder).predict(["day with fox and bread"])
    assert found["prediction"][0].split(";") == ["animals", "food"]
    flags = frame[["text"]].assign(**{topic: [int(topic in topics) for topics in chosen] for topic in words})
    assert (kinds.open(flags).task, kinds.open(flags).classes) == ("multilabel", list(words))


def test_word_vectors_are_where_the_network_begins(tmp_path):
    """Words of the vectors file alone, unseen in training, are told apart by them."""
    topics = {"animals": (1, 0), "weather": (-1, 1), "food": (0, -1)}
    words = {"animals": ["fox", "hare", "crow", "wolf", "owl"], "weather": ["rain", "snow", "wind", "sun", "fog"],
             "food": ["bread", "corn", "soup", "tea", "rice"]}  # fmt: skip
    lines = [f"{word} {a} {b} 0.1" for topic, (a, b) in topics.items() for word in words[topic]]
    (tmp_path / "v.txt").write_text("15 3\n" + "\n".join(lines))
    frame = pd.DataFrame(labelled(120), columns=["label", "text"])
    run = wonderland.fit(frame, out=tmp_path / "run", epochs=1, vectors=str(tmp_path / "v.txt"))
    network = run.model.network
    fox = run.encoder.tokenizer.id("fox")
    assert network.known[fox].tolist() == pytest.approx([1, 0, 0.1])
    assert (network.known.abs().sum(1) > 0).sum() == 12
    assert network.embedding.weight.shape[1] == 3
    assert wonderland.load(run.folder).predict(["the fox was here"])["prediction"].tolist() == ["animals"]
    (tmp_path / "other.txt").write_text("chat 1 2\nchien 3 4\n")
    refuses(f"{tmp_path / 'other.txt'} has no vector of any word of frame: is it of another language?",
            lambda: wonderland.fit(frame, out=tmp_path / "b", vectors=str(tmp_path / "other.txt")))  # fmt: skip
