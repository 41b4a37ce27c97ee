"""fit for plain text: from a file to a language model that writes; resume, refusals, and what is measured."""

import json
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import wonderland
from tests.texts import language, names, rhyme
from wonderland.cli import main as cli
from wonderland.core import WonderlandError
from wonderland.data.text.tokenizer import Tokenizer
from wonderland.kinds.corpus.corpus import Corpus
from wonderland.kinds.corpus.encoder import CorpusEncoder
from wonderland.kinds.corpus.examples import TokenExamples
from wonderland.models import Decoder
from wonderland.road.facts import refit_command


def refuses(text, call):
    with pytest.raises(WonderlandError, match="^" + re.escape(text) + "$"):
        call()


def test_a_run_writes_measures_and_loads():
    run = language()
    metrics = run.metrics
    assert set(metrics) == {"loss", "bits_per_byte", "perplexity", "accuracy"}
    assert metrics["loss"] < 2.3 < math.log(run.encoder.tokenizer.vocab)  # it learned something
    assert metrics["perplexity"] == pytest.approx(math.exp(metrics["loss"]))
    test = run.record["measured"]["test"]
    assert metrics["bits_per_byte"] == pytest.approx(metrics["loss"] * test["rows"] / test["bytes"] / math.log(2))
    assert abs(test["conformal"]["coverage"] - 0.9) < 0.08
    again = wonderland.load(run.folder)
    generate, the_same = run.ability("generate"), again.ability("generate")
    assert the_same("The ", 40, seed=3) == generate("The ", 40, seed=3)
    assert the_same("The ", 40, seed=3) != generate("The ", 40, seed=4)
    assert "".join(generate.write("The ", 30, temperature=0)) == generate("The ", 30, temperature=0)
    assert "The ".join(["", generate("The ", 40, temperature=0, stop="x")]).count("x") == 0
    assert {"config.json", "model.safetensors", "preprocess.json", "trust.json", "report.html"} <= {
        path.name for path in run.folder.iterdir()
    }


def test_the_measured_loss_is_the_mean_over_every_test_token():
    """By another road: the text of the test part, window by window."""
    run = language()
    corpus = Corpus.open(run.config["source"]["origin"]["path"])
    shares = corpus.shares(0.2)
    text = "".join(piece for piece, _ in corpus.part("test", shares, 0))
    ids = run.encoder.tokenizer.encode(text)
    nats, context = 0.0, run.encoder.context
    for begin in range(0, len(ids) - 1, context):
        some = torch.tensor([ids[begin : begin + context + 1]])
        with torch.no_grad():
            logits = run.model(some[:, :-1])
        nats += float(torch.nn.functional.cross_entropy(logits[0].double(), some[0, 1:], reduction="sum"))
    assert run.metrics["loss"] == pytest.approx(nats / (len(ids) - 1), rel=1e-4)


def test_a_language_model_predicts_and_evaluates():
    run = language()
    table = run.predict([rhyme(), "zzzz qqqq", ""])
    assert list(table.columns) == ["text", "tokens", "loss", "bits_per_byte", "perplexity", "next", "set"]
    assert table["loss"][0] < table["loss"][1]
    assert table["tokens"][2] == 0
    assert table["next"][0] in table["set"][0] or not table["set"][0]
    found = run.evaluate([rhyme() * 3])
    assert found["rows"] == len(run.encoder.tokenizer.encode(rhyme() * 3)) - 1
    assert found["metrics"]["loss"] < math.log(run.encoder.tokenizer.vocab)
    refuses("The text has no token to predict: give at least two tokens.", lambda: run.evaluate([""]))
    refuses("A language model reads a path or a list of texts, not int.", lambda: run.predict(3))
    refuses("A prompt is text, not int.", lambda: run.ability("generate")(3))


def test_unknown_characters_give_a_finding():
    run = language()
    run.predict(["漢字"])
    assert [finding.text for finding in run.noticed] == ["2 tokens are not in the vocabulary and count as unknown."]


def test_lines_are_documents():
    run = names()
    assert run.encoder.many
    assert run.encoder.frame == [run.encoder.tokenizer.end]
    written = [run.ability("generate")(count=30, seed=seed) for seed in range(8)]
    assert all("\n" not in name for name in written)
    assert sum(1 <= len(name) < 25 for name in written) >= 6  # names end by themselves
    assert run.metrics["loss"] < 2.9


def test_the_parts_share_nothing(tmp_path):
    (tmp_path / "a.txt").write_text("".join(f"{i:05d} " for i in range(3000)))
    corpus = Corpus.open(tmp_path / "a.txt")
    shares = corpus.shares(0.2)
    texts = {name: "".join(piece for piece, _ in corpus.part(name, shares, 0)) for name in shares}
    assert (
        "".join(texts[name] for name in ("train", "validation", "calibration", "test"))
        == (tmp_path / "a.txt").read_text()
    )
    lined = (
        Corpus.open(tmp_path / "b.txt", lines=True)
        if (tmp_path / "b.txt").write_text("\n".join(map(str, range(300))))
        else None
    )
    parts = {name: {piece for piece, _ in lined.part(name, shares, 1)} for name in shares}
    assert set.union(*parts.values()) == set(map(str, range(300)))
    assert sum(map(len, parts.values())) == 300


def test_every_token_is_predicted_once(tmp_path):
    from wonderland.data import Tokenizer, write_tokens

    tokenizer = Tokenizer.train("abcdefghij ", kind="characters")
    file = write_tokens([("abc defghij" * 9, True)], tokenizer, tmp_path / "t", end=False)
    batches = TokenExamples(CorpusEncoder(tokenizer, 16, many=False), False).in_order(file)
    targets = torch.cat([batch["y"][batch["y"] != -100] for batch in batches])
    assert targets.tolist() == file.tokens[1:].tolist()
    many = write_tokens([("abc", True), ("defghij", True)] * 20, tokenizer, tmp_path / "m", begin=True)
    batches = TokenExamples(CorpusEncoder(tokenizer, 16, many=True), True).in_order(many)
    targets = torch.cat([batch["y"][batch["y"] != -100] for batch in batches])
    starts = set(many.documents[:-1].tolist())
    assert sorted(targets.tolist()) == sorted(int(t) for i, t in enumerate(many.tokens) if i not in starts)


def test_errors_to_the_word(tmp_path):
    def fit(text, **named):
        (tmp_path / "a.txt").write_bytes(text if isinstance(text, bytes) else text.encode())
        return wonderland.fit(tmp_path / "a.txt", out=tmp_path / "run", **named)

    long = rhyme() * 10
    refuses("a.txt holds no text to learn from.", lambda: fit("  \n \n"))
    refuses("a.txt holds no text to learn from.", lambda: fit(b""))
    refuses(
        "a.txt has 60 tokens, too few to learn from and to test on: give at least 180.",
        lambda: fit("abcdef ghi jk\n" * 4 + "abcd"),
    )
    with pytest.raises(
        WonderlandError, match=r"its shortest part 1,410: the context can be at most 1,409, not 5,000\.$"
    ):
        fit(long, context=5000)
    refuses(f"{tmp_path / 'a.txt'} is not text: there is a zero byte at offset 3.", lambda: fit(b"abc\0def" * 9))
    refuses("A test part of 0.95 leaves nothing of a.txt to learn from: give it at most 0.8 of the text.",
            lambda: fit(rhyme(), test=0.95))  # fmt: skip
    with pytest.raises(
        WonderlandError, match=r"^target is an option of table, .*pairs.*, and a.txt is read as corpus: leave it out"
    ):
        fit(long, target="x")
    refuses(
        "There is no tokens 'byte'. Known are characters, words, bpe, wordpiece, unigram.",
        lambda: fit(long, tokens="byte"),
    )
    with pytest.raises(
        WonderlandError,
        match=r"^Your module Linear cannot generate: it needs an attribute vocab, \d+ here, and a method stream\. It is given int64 of shape \(rows, 128\)\.$",
    ):
        fit(long, model=torch.nn.Linear(1, 1))
    assert not (tmp_path / "run" / "config.json").exists()


class Embedded(torch.nn.Module):
    """Gives logits, and has nothing that generation needs."""

    def __init__(self, vocab):
        super().__init__()
        self.embedding, self.out = torch.nn.Embedding(vocab, 8), torch.nn.Linear(8, vocab)

    def forward(self, x):
        return self.out(self.embedding(x))


def test_a_users_own_model_can_generate(tmp_path):
    (tmp_path / "a.txt").write_text(rhyme())
    vocab = len(set(rhyme())) + 1
    refuses(
        f"Your module Embedded cannot generate: it needs an attribute vocab, {vocab} here, and a method stream. It is given int64 "
        "of shape (rows, 128).",
        lambda: wonderland.fit(tmp_path / "a.txt", out=tmp_path / "run", steps=2, model=Embedded(vocab)),
    )
    assert not (tmp_path / "run" / "config.json").exists()
    own = Decoder(vocab=vocab, dim=16, depth=1)
    run = wonderland.fit(tmp_path / "a.txt", out=tmp_path / "run", steps=2, model=own)
    again = wonderland.load(run.folder, model=Decoder(vocab=vocab, dim=16, depth=1))
    assert again.ability("generate")("The ", 9, seed=1) == run.ability("generate")("The ", 9, seed=1)


def test_the_same_seed_gives_the_same_bits_and_resume_is_exact(tmp_path):
    """Stopped after a third, continued, it ends with the bits of the run left in peace."""
    path = tmp_path / "a.txt"
    path.write_text(rhyme() * 12)
    options = {"steps": 30, "context": 16, "tokens": "bpe", "vocab": 300, "batch_size": 8}
    straight = wonderland.fit(path, out=tmp_path / "straight", **options)
    seen = []

    def stop_at(dataset, plan, finished):
        inner = plan.evaluate

        def evaluate(state):
            seen.append(state.step)
            if len(seen) == 3:
                raise KeyboardInterrupt
            return inner(state)

        plan.evaluate = evaluate

    with pytest.raises(KeyboardInterrupt):
        wonderland.fit(path, out=tmp_path / "cut", on_start=stop_at, **options)
    assert not (tmp_path / "cut" / "model.safetensors").exists()
    wonderland.fit(resume=tmp_path / "cut")
    for name in ("config.json", "preprocess.json", "model.safetensors", "metrics.jsonl", "trust.json"):
        assert (tmp_path / "cut" / name).read_bytes() == (straight.folder / name).read_bytes(), name
    path.write_text(rhyme() * 12 + "more")
    with pytest.raises(WonderlandError, match="changed since the run began"):
        wonderland.fit(resume=tmp_path / "cut")


def test_damaged_runs_are_refused(tmp_path):
    import shutil

    whole_run = language().folder

    def broken(name, change, says):
        folder = tmp_path / f"{name}-{len(list(tmp_path.iterdir()))}"
        shutil.copytree(whole_run, folder)
        value = json.loads((folder / name).read_text())
        change(value)
        (folder / name).write_text(json.dumps(value))
        with pytest.raises(WonderlandError, match=says):
            wonderland.load(folder)

    broken("preprocess.json", lambda v: v.pop("tokenizer"), r"is not for text: the file is damaged or not ours\.$")
    broken("preprocess.json", lambda v: v["tokenizer"].pop("model"), r"^This is not the JSON of a tokenizer")
    broken("preprocess.json", lambda v: v.update(context=-1), r"is not for text: the file is damaged or not ours\.$")
    broken(
        "preprocess.json", lambda v: v.update(many=not v["many"]), r"is not the file that trust\.json was measured with"
    )
    broken(
        "trust.json",
        lambda v: v.update(temperature=0),
        r"^trust\.json lacks its temperature, level or scores: it is damaged\.$",
    )
    broken("trust.json", lambda v: v.update(scores=[]), r"damaged")
    broken(
        "config.json", lambda v: v["recipe"]["task"]["arguments"].update(vocab=7), r"is not the file|another vocabulary"
    )
    broken(
        "config.json",
        lambda v: v["recipe"]["model"]["arguments"].update(vocab=10**9),
        r"asks for a size above the limit",
    )


def test_the_report_shows_samples_neighbours_and_attention():
    page = (language().folder / "report.html").read_text()
    for heading in ("Generated samples", "Nearest neighbours", "Attention weights", "Bits per byte", "Perplexity"):
        assert heading in page, heading
    assert "<script" not in page
    # One text goes on from unseen words by chance and one by likelihood, and one comes from nothing.
    assert page.count('<span class="given">') == 2
    assert page.count('<figure class="sample">') == 3


def test_counts_and_shares(tmp_path):
    (tmp_path / "a.txt").write_text("ab c" * 1000)
    corpus = Corpus.open(tmp_path / "a.txt")
    assert corpus.headline() == "a.txt: 4,000 bytes of text, 1 document, language modelling"
    assert corpus.example(0)["text"].startswith("ab c")
    assert sum(corpus.shares(0.2).values()) == pytest.approx(1)
    assert np.isclose(corpus.shares(0.2)["test"], 0.2)


def test_words_are_held_to_what_is_shown(tmp_path):
    (tmp_path / "a.txt").write_text("the cat sat on the dog and the dog sat on the cat .\n" * 60)
    run = wonderland.fit(tmp_path / "a.txt", tokens="words", out=tmp_path / "run", steps=3)
    for pattern, prompt in (("the (cat|dog)", ""), ("(dog|cat)", "the "), (" (dog|cat)", "the"), ("(the|cat)", "")):
        for beams in (None, 2):
            text = run.ability("generate")(prompt, 9, matches=pattern, **({} if beams is None else {"beams": beams}))
            assert re.fullmatch(pattern, text), (pattern, prompt, text)
    (tmp_path / "empty.txt").write_text("")
    refuses("There is no text to measure: the source is empty.", lambda: run.predict(tmp_path / "empty.txt"))


def test_a_batch_larger_than_the_text_is_refused(tmp_path):
    (tmp_path / "a.txt").write_text(rhyme(40))
    with pytest.raises(WonderlandError, match=r"^batch_size 5000 asks for 160,000 tokens a step, and the training part of a.txt has [\d,]+: "
                       r"at most \d+ fits a context of 32.$"):  # fmt: skip
        wonderland.fit(tmp_path / "a.txt", out=tmp_path / "run", context=32, batch_size=5000)


def test_the_command_that_fits_again_asks_for_what_was_measured(tmp_path):
    (tmp_path / "a.txt").write_text(rhyme(40))
    run = wonderland.fit(tmp_path / "a.txt", out=tmp_path / "run", context=16, budget=0.5, weight_decay=0.0, threads=1)
    steps = run.config["recipe"]["steps"]
    assert refit_command(run.config) == [
        {
            "text": "Fit it again, to the same bits on the same machine",
            "command": f"wonderland fit {tmp_path / 'a.txt'} --context 16 --steps {steps} --weight-decay 0.0 --threads 1 --out NEWFOLDER",
        }
    ]
    second = wonderland.fit(
        tmp_path / "a.txt", out=tmp_path / "second", context=16, steps=steps, weight_decay=0.0, threads=1
    )
    assert all(map(torch.equal, run.model.parameters(), second.model.parameters()))


def test_a_checkpoint_is_named_as_the_shell_names_it():
    config = language().config
    run = SimpleNamespace(config={
        "source": {"kind": "corpus", "origin": {"path": "a.txt"}}, "recipe": config["recipe"] | {"lr": 0.25}, "threads": 2,
        "request": {"kind": None, "options": {"start": "/x/gpt2", "method": "lora", "lines": True}, "training": {"lr": "auto"}},
    })  # fmt: skip
    (found,) = refit_command(run.config)
    assert (
        found["command"]
        == "wonderland fit a.txt --from /x/gpt2 --method lora --lines --lr 0.25 --threads 2 --out NEWFOLDER"
    )


def test_batches_may_be_larger_than_the_rows_of_packed_documents(tmp_path):
    (tmp_path / "a.txt").write_text(rhyme(40))
    run = wonderland.fit(tmp_path / "a.txt", out=tmp_path / "run", lines=True, context=64, batch_size=200, steps=1)
    assert run.config["recipe"]["batch_size"] < 200


def test_a_users_own_tokenizer(tmp_path):
    text, folder = tmp_path / "a.txt", tmp_path / "tokens"
    text.write_text(rhyme(60))
    assert cli.main(["tokenize", str(text), "--vocab", "280", "--out", str(folder), "--quiet"]) == 0
    run = wonderland.fit(text, tokenizer=folder, out=tmp_path / "run", steps=3)
    made = Tokenizer.load(folder)
    assert run.encoder.tokenizer.digest == made.digest
    assert run.ability("generate")("a", 5)
    assert f"--tokenizer {folder} " in refit_command(run.config)[0]["command"]
    with_file = wonderland.fit(text, tokenizer=folder / "tokenizer.json", out=tmp_path / "other", steps=3)
    assert with_file.config["split"]["digest"] == run.config["split"]["digest"]
    refuses(
        "vocab is for tokens that are to be learned, and tokenizer names those of a file.",
        lambda: wonderland.fit(text, out=tmp_path / "third", tokenizer=folder, vocab=300),
    )
    refuses(
        "tokenizer is an option of corpus, and iris is read as table: leave it out, or name another kind with kind (--kind).",
        lambda: wonderland.fit("iris", out=tmp_path / "third", tokenizer=folder),
    )
    with pytest.raises(WonderlandError, match=re.escape(str(tmp_path / "none.json"))):
        wonderland.fit(text, tokenizer=tmp_path / "none.json", out=tmp_path / "third")
