"""Vectors of texts by a run or a checkpoint, their file, the search in it, and the names of their clusters."""

import re

import numpy as np
import pytest
import torch

from tests.texts import topics
from tests.train.test_start import place
from wonderland import checkpoints
from wonderland.cli.main import main
from wonderland.core import WonderlandError
from wonderland.data.text.cluster_names import cluster_names
from wonderland.ship.embedding import Embedded, Embedder, read_vectors_file, write_vectors
from wonderland.understand.clusters import clustered

TEXTS = ["the fox was here", "a crow and a wolf", "so much rain", "snow", "the bread was not here", "soup and tea", ""]


def test_a_checkpoint_gives_the_mean_of_its_tokens_whatever_is_beside_them():
    embedder = Embedder(place() / "bert")
    together, alone = embedder(TEXTS), np.concatenate([embedder([text]) for text in TEXTS])
    np.testing.assert_allclose(together, alone, atol=1e-5)
    model = checkpoints.load_pretrained(place() / "bert", dtype=torch.float32).eval()
    tokens = torch.tensor([embedder.tokenizer.encode(TEXTS[0], add_special_tokens=True)])
    with torch.no_grad():
        mean = model.trunk.features(tokens).mean(1)[0]
    np.testing.assert_allclose(together[0], torch.nn.functional.normalize(mean, dim=0).numpy(), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)


def test_a_run_gives_vectors_and_its_file_is_searched(tmp_path, capsys):
    run = topics()
    vectors = run.embed(TEXTS[:6])
    np.testing.assert_allclose(vectors, Embedder(run.folder)(TEXTS[:6]), atol=1e-6)
    (tmp_path / "texts.txt").write_text("\n".join(TEXTS[:6]))
    out = str(tmp_path / "vectors.npy")
    assert main(["embed", str(run.folder), str(tmp_path / "texts.txt"), "-o", out, "--clusters", "2"]) == 0
    np.testing.assert_allclose(np.load(out), vectors, atol=1e-6)
    assert read_vectors_file(out).texts == TEXTS[:6]
    assert main(["neighbours", out, "the fox was here", "#4", "--top", "2"]) == 0
    shown = capsys.readouterr().out
    assert "6 vectors of" in shown
    assert shown.count("the fox was here") >= 2
    for words, text in (
        (["neighbours", out, "#7"], f"{out} has the rows 1 to 6, not 7."),
        (["neighbours", str(tmp_path / "no.npy"), "x"], f"There is no file {tmp_path / 'no.npy'}: wonderland embed RUN TEXTS -o vectors.npy writes one."),
        (["embed", str(run.folder), str(tmp_path / "texts.txt"), "-o", "x.csv"], "Vectors are written as a .npy file, not .csv."),
        (["embed", str(tmp_path), str(tmp_path / "texts.txt"), "-o", out],
         f"{tmp_path} is no finished run, and no checkpoint with a tokenizer.json: texts cannot be read with it."),
        (["embed", str(run.folder), str(tmp_path / "texts.txt"), "-o", out, "--clusters", "9"], "6 texts form 2 to 6 clusters, not 9."),
    ):  # fmt: skip
        assert main(words) == 2
        assert capsys.readouterr().err == f"wonderland: {text}\n"


def test_damaged_vectors_are_refused(tmp_path):
    path = tmp_path / "v.npy"
    write_vectors(path, Embedded(np.eye(2), ["a", "b"], "somewhere"))
    (tmp_path / "v.jsonl").write_text('{"source": "x"}\n{"text": "a"}\n')
    with pytest.raises(WonderlandError, match=re.escape("does not hold the texts of v.npy: one of them was changed.")):
        read_vectors_file(path)
    path.write_bytes(path.read_bytes()[:90])
    with pytest.raises(WonderlandError, match="does not hold vectors"):
        read_vectors_file(path)
    np.save(path, np.array([{}], object), allow_pickle=True)
    with pytest.raises(WonderlandError, match="does not hold vectors"):
        read_vectors_file(path)


def test_clusters_have_the_words_that_tell_them_apart():
    texts = ["the red fox", "a red dog", "red red hen", "the blue sea", "a blue sky", "blue so blue"]
    vectors = np.repeat(np.eye(2), 3, axis=0)
    rows = clustered(vectors, texts, 2, ["warm"] * 3 + ["cold"] * 3)
    assert {(row["words"][0], row["group"], row["share"], row["size"]) for row in rows} == {
        ("red", "warm", 1.0, 3),
        ("blue", "cold", 1.0, 3),
    }
    assert cluster_names(["same words", "same words"], np.array([0, 1])) == [[], []]
