"""fit for pairs of texts: two columns become a translator, measured by what it writes."""

import re
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pandas as pd
import pytest

import wonderland
from wonderland import kinds
from wonderland.core import WonderlandError

WORDS = {"one": "un", "two": "deux", "red": "rouge", "dog": "chien", "cat": "chat", "sees": "voit", "and": "et"}


def pairs(count: int = 160, seed: int = 0) -> pd.DataFrame:
    random = __import__("numpy").random.default_rng(seed)
    rows = [random.choice(list(WORDS), random.integers(3, 6)) for _ in range(count)]
    return pd.DataFrame(
        {"source": [" ".join(row) for row in rows], "target": [" ".join(WORDS[w] for w in row) for row in rows]}
    )


@cache
def translator():
    folder = Path(mkdtemp(prefix="wonderland-pairs-"))
    pairs().to_csv(folder / "pairs.csv", index=False)
    return wonderland.fit(folder / "pairs.csv", out=folder / "run", kind="pairs", steps=70, lr=4e-3)


def refuses(text, call):
    with pytest.raises(WonderlandError, match="^" + re.escape(text) + "$"):
        call()


def test_a_translator_learns_writes_and_loads(tmp_path):
    run = translator()
    assert set(run.metrics) == {"bleu", "chrf", "exact_match", "loss", "bits_per_byte", "perplexity", "accuracy"}
    assert run.metrics["chrf"] > 25
    again = wonderland.load(run.folder)
    said = again.ability("generate")("two dog and one cat")
    assert said == run.ability("generate")("two dog and one cat")
    new = pairs(20, seed=5)
    new.to_csv(tmp_path / "new.csv", index=False)
    (tmp_path / "new.txt").write_text("\n".join(new["source"]))
    table = again.predict(tmp_path / "new.csv")
    assert list(table.columns) == ["source", "prediction"]
    assert table["prediction"].tolist() == again.predict(tmp_path / "new.txt")["prediction"].tolist()
    assert table["prediction"].tolist() == again.predict(new["source"].tolist())["prediction"].tolist()
    found = again.evaluate(tmp_path / "new.csv")
    assert found["pairs"] == 20
    assert 0 <= found["metrics"]["bleu"] <= 100
    refuses("texts has no column 'target' to compare with.", lambda: again.evaluate(["one dog"]))
    refuses("Translating takes a text, not a int.", lambda: run.ability("generate")(3))
    page = (run.folder / "report.html").read_text()
    assert "BLEU" in page
    assert "<script" not in page


def test_batched_translations_are_those_of_each_alone():
    run = translator()
    texts = pairs(12, seed=9)["source"].tolist()
    translate = run.ability("generate")
    assert run.predict(texts)["prediction"].tolist() == [translate(text) for text in texts]


def test_resume_is_exact(tmp_path):
    pairs(60).to_csv(tmp_path / "pairs.csv", index=False)
    options = {"kind": "pairs", "steps": 12}
    straight = wonderland.fit(tmp_path / "pairs.csv", out=tmp_path / "straight", **options)
    seen = []

    def cut(dataset, plan, finished):
        inner = plan.evaluate

        def evaluate(state):
            seen.append(state.step)
            if len(seen) == 3:
                raise KeyboardInterrupt
            return inner(state)

        plan.evaluate = evaluate

    with pytest.raises(KeyboardInterrupt):
        wonderland.fit(tmp_path / "pairs.csv", out=tmp_path / "cut", on_start=cut, **options)
    wonderland.fit(resume=tmp_path / "cut")
    for name in ("config.json", "preprocess.json", "model.safetensors", "metrics.jsonl", "trust.json"):
        assert (tmp_path / "cut" / name).read_bytes() == (straight.folder / name).read_bytes(), name


def test_which_tables_are_read_as_pairs(tmp_path):
    rows = [f"this is text number {i} .\tceci est le texte {i} .\n" for i in range(30)]
    (tmp_path / "a.tsv").write_text("".join(rows))
    found = kinds.open(tmp_path / "a.tsv")
    assert (found.kind, len(found), found.column_names) == ("pairs", 30, ("c0", "c1"))
    assert found.sources[0] == "this is text number 0 ."
    frame = pairs(30)
    assert kinds.open(frame.assign(note="x"), kind="pairs").column_names == ("source", "target")
    assert kinds.open(frame, column="target", target="source", task="translation").column_names == ("target", "source")
    frame.loc[3, "target"] = None
    found = kinds.open(frame, kind="pairs")
    assert "1 row lacks one of the two texts and is left out." in [finding.text for finding in found.findings]
    refuses("frame has 3 pairs of texts: give at least 8.", lambda: kinds.open(frame.head(3), kind="pairs"))
    refuses("Pairs need two columns of text: name them with the options column and target.",
            lambda: kinds.open(pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}), kind="pairs"))  # fmt: skip
    refuses(
        "There is no column 'sorce' (given as column). Did you mean 'source'?",
        lambda: kinds.open(frame, kind="pairs", column="sorce"),
    )


def test_token_options_of_pairs(tmp_path):
    pairs().to_csv(tmp_path / "pairs.csv", index=False)
    run = wonderland.fit(tmp_path / "pairs.csv", out=tmp_path / "run", steps=2, tokens="words", vocab=12, context=4)
    assert (run.encoder.tokenizer.kind, run.encoder.tokenizer.vocab) == ("words", 12)
    assert (run.encoder.read, run.encoder.write) == (4, 4)
    assert wonderland.load(run.folder).ability("generate")("one dog") == run.ability("generate")("one dog")
    refuses(
        "group is an option of table, graph, sound and signal, and pairs.csv is read as pairs: leave it out, or name another kind with kind (--kind).",
        lambda: wonderland.fit(tmp_path / "pairs.csv", out=tmp_path / "other", kind="pairs", group="source"),
    )
