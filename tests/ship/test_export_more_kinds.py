"""Export of sounds, signals, clips, graphs, boxes, masks, tags, answers, matches and ratings: each file answers as predict does."""

import json

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import torch

import wonderland
from tests.kinds.answers.test_kind import squad
from tests.kinds.clip.test_clips import write as write_clips
from tests.kinds.graph.graphs import graph_folder, link_folder, node_folder
from tests.kinds.image.scenes import write_coco, write_masks
from tests.kinds.matches.test_kind import pairs
from tests.kinds.signal.made import long_table, write_ts
from tests.kinds.sound.made import tone, write_folder
from tests.kinds.tags.test_kind import conll
from tests.kinds.test_ratings import events
from tests.runs import mixed
from wonderland.core import WonderlandError
from wonderland.data.recording import write_wave
from wonderland.data.tensor_canvas import placed_tensor, sizes_on_canvas, spread_to
from wonderland.kinds.image import annotated_recipe
from wonderland.kinds.image.canvas import fit_into, placed
from wonderland.ops import crf
from wonderland.ops.vision import batched_nms
from wonderland.ship import export
from wonderland.ship.comparing import onnx_runner
from wonderland.ship.quantizing import loss
from wonderland.tasks.box_answers import boxes_apart, picked
from wonderland.tasks.class_options_answers import TorchCalibrator
from wonderland.trust.scaling import CALIBRATORS


def said(folder):
    """Recordings of words of two tones."""
    rows, draw = [], np.random.default_rng(0)
    for row in range(30):
        word = "".join(draw.choice(list("ab"), size=draw.integers(1, 4)))
        wave = np.concatenate([tone(row, letter == "b")[:1000] for letter in word])
        (folder / f"{row}.wav").write_bytes(write_wave(wave, 8000))
        rows.append({"file": f"{row}.wav", "text": word})
    pd.DataFrame(rows).to_csv(folder / "said.csv", index=False)
    return folder / "said.csv"


def series_file(folder):
    long_table(range(30)).to_csv(folder / "series.csv", index=False)
    return folder / "series.csv"


def classes_with_texts(folder):
    draw = np.random.default_rng(0)
    words = np.array(
        [
            "a",
            "fine",
            "bad",
            "long",
            "film",
            "plot",
            "that",
            "was",
            "seen",
            "by",
            "the",
            "whole",
            "town",
            "last",
            "rainy",
            "night",
        ]
    )
    text = [" ".join(draw.choice(words, 12)) for _ in range(160)]
    return pd.DataFrame(
        {"said": text, "price": draw.normal(size=160), "y": ["yes" if "fine" in one else "no" for one in text]}
    )


MADE = {
    "signal": (lambda f: write_ts(f / "w.ts", range(30)), {}),
    "network for signals": (series_file, {"series": "id", "target": "pitch", "model": "InceptionTime(dim=4, depth=3)"}),
    "sound": (lambda f: write_folder(f / "s", 30), {}),
    "waves": (lambda f: write_folder(f / "s", 30), {"model": "WaveConvNet(dim=8, depth=2)"}),
    "transcripts": (said, {"target": "text"}),
    "clip": (lambda f: write_clips(f / "c", range(24)), {}),
    "nodes": (lambda f: node_folder(f / "g"), {}),
    "links": (lambda f: link_folder(f / "g"), {}),
    "graphs": (lambda f: graph_folder(f / "g"), {}),
    "boxes": (lambda f: write_coco(f / "b", 28), {}),
    "masks": (lambda f: write_masks(f / "m", 28), {}),
    "tags": (lambda f: conll(f / "w.conll", 100, 0), {}),
    "answers": (lambda f: squad(f / "q.json", 30, 0, 0.2), {}),
    "matches": (lambda f: pairs(f / "p.csv", 60, 0), {"task": "matching"}),
    "ratings": (lambda f: events(), {}),
    "ratings as numbers": (lambda f: events(), {"goal": "rating"}),
    "texts in a table": (classes_with_texts, {"target": "y", "kind": "table"}),
    "abstention": (lambda f: mixed(), {"target": "risk", "abstain": 0.1}),
    "sets by class": (lambda f: mixed(), {"target": "risk", "conformal": "class"}),
    "quantiles": (lambda f: mixed().drop(columns="risk"), {"target": "income", "conformal": "cqr"}),
}
QUICK = ("ratings",)


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in MADE]
)
def test_the_file_answers_as_predict_does(tmp_path, monkeypatch, name):
    monkeypatch.setattr(annotated_recipe, "WIDTHS", {"detection": (8, 8), "segmentation": (4, 4)})
    make, options = MADE[name]
    run = wonderland.fit(make(tmp_path), out=tmp_path / "run", steps=4, threads=1, **options)
    assert export(run, "onnx", tmp_path / "model.onnx").difference < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("name", ["signal", "sound", "nodes", "boxes", "tags", "ratings"])
def test_torch_programs_and_bytes(tmp_path, monkeypatch, name):
    monkeypatch.setattr(annotated_recipe, "WIDTHS", {"detection": (8, 8), "segmentation": (4, 4)})
    make, options = MADE[name]
    run = wonderland.fit(make(tmp_path), out=tmp_path / "run", steps=4, threads=1, **options)
    assert export(run, "torch", tmp_path / "model.pt2").difference < 1e-5
    assert export(run, "onnx", tmp_path / "model.onnx", quantize="int8").notes[-1].startswith("Quantized from ")


def test_recordings_of_other_lengths_than_the_export_was_tried_on(tmp_path):
    run = wonderland.fit(write_folder(tmp_path / "s", 30), out=tmp_path / "run", steps=4, threads=1)
    session = onnxruntime.InferenceSession(export(run, "onnx", tmp_path / "model.onnx").files[0])
    waves = [tone(row, bool(row % 2)).astype(np.float32) for row in range(5)]
    given = np.full((5, max(map(len, waves)) + 37), np.nan, np.float32)
    for row, wave in zip(given, waves, strict=True):
        row[: len(wave)] = wave
    _, _, probabilities, _ = session.run(None, {"samples": given})
    expected = run.predict((waves, 8000))[[f"p({name})" for name in run.classes]].to_numpy()
    assert np.abs(probabilities - expected).max() < 1e-5


def test_names_of_users_and_items_stand_beside(tmp_path):
    run = wonderland.fit(events(), out=tmp_path / "run", steps=4, threads=1)
    made = export(run, "onnx", tmp_path / "model.onnx")
    names = json.loads(made.files[1].read_text())
    assert made.files[1].name == "names.json"
    assert names["items"] == run.encoder.item_names
    assert set(names["chosen"]) == set(run.encoder.user_names)


def test_what_the_runtime_cannot_run_is_a_sentence():
    with pytest.raises(WonderlandError, match=r"^ONNX Runtime cannot run the exported file, so it was not written: \S"):
        onnx_runner(b"no model", ("prediction",))


def test_what_has_no_operator_says_so(tmp_path):
    frame = pd.DataFrame({"a": np.linspace(0, 1, 40), "y": np.sin(np.arange(40.0) / 5)})
    run = wonderland.fit(frame, "y", out=tmp_path / "run", model="GaussianProcess")
    with pytest.raises(WonderlandError) as error:
        export(run)
    assert str(error.value) == (
        f"The run in {run.folder} cannot be exported. A Gaussian process solves a system of linear equations for each row, and ONNX has no "
        "operator for that."
    )


@pytest.mark.parametrize(
    ("size", "canvas"), [((10, 9), (16, 16)), ((40, 77), (32, 32)), ((5, 300), (24, 16)), ((1, 1), (8, 8))]
)
def test_pictures_lie_on_the_canvas_as_pillow_puts_them(size, canvas):
    pixels = np.random.default_rng(0).integers(0, 256, (*size, 3), dtype=np.uint8)
    ours = placed_tensor(torch.from_numpy(pixels[None]), *canvas, outside=128)[0]
    assert np.array_equal(ours.numpy(), placed(pixels, canvas).transpose(2, 0, 1))
    fit, maps = fit_into(size, canvas), torch.rand(1, 2, *canvas, generator=torch.Generator().manual_seed(0))
    high, wide = max(1, round(fit.height * fit.scale)), max(1, round(fit.width * fit.scale))
    expected = torch.nn.functional.interpolate(
        maps[:, :, :high, :wide], size=size, mode="bilinear", align_corners=False
    )
    own = spread_to(maps, *size, *sizes_on_canvas(torch.from_numpy(pixels[None]), *canvas))
    torch.testing.assert_close(own.float(), expected, atol=1e-5, rtol=0)


def test_suppression_without_branches_keeps_the_same_boxes():
    generator = torch.Generator().manual_seed(0)
    corners = torch.rand(2, 60, 2, generator=generator) * 40
    boxes = torch.cat([corners, corners + 4 + 20 * torch.rand(2, 60, 2, generator=generator)], 2)
    labels = torch.randint(0, 2, (2, 60), generator=generator)
    scores = torch.rand(2, 60, generator=generator).sort(1, descending=True).values
    rows, kept = picked(boxes, labels, scores > 0.2, 60)
    for i in range(2):
        alive = (scores[i] > 0.2).nonzero()[:, 0]
        expected = alive[batched_nms(boxes[i][alive], scores[i][alive], labels[i][alive], 0.5)]
        assert rows[i][kept[i]].tolist() == expected.tolist()


def test_other_boxes_are_infinitely_far():
    one = {"boxes": torch.tensor([[0.0, 0, 2, 2]]), "scores": torch.tensor([0.5]), "classes": torch.tensor([1])}
    given = {
        "boxes": np.zeros((1, 3, 4)),
        "probabilities": np.full((1, 3), 0.5),
        "labels": np.array([[0, -1, -1]]),
        "count": np.array([1]),
    }
    given["boxes"][0, 0] = [0, 0, 2, 2.002]
    assert boxes_apart([one], given) == np.inf
    assert boxes_apart([one], given | {"labels": np.array([[1, -1, -1]])}) == pytest.approx(0.001)
    assert boxes_apart([one], given | {"count": np.array([0])}) == np.inf


@pytest.mark.slow
def test_a_chain_in_an_exported_program_is_the_same_chain():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(3, 6, 4, generator=generator)
    own = (
        torch.randn(4, 4, generator=generator),
        torch.randn(4, generator=generator),
        torch.randn(4, generator=generator),
    )
    mask = torch.arange(6) < torch.tensor([[6], [1], [4]])

    class Chain(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.own = torch.nn.ParameterList(own)

        def forward(self, scores, mask):
            return crf.best_path(scores, *self.own, mask)[0], crf.log_marginals(scores, *self.own, mask)

    dynamic = ({0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC},) * 2
    graph = torch.export.export(Chain(), (scores, mask), dynamic_shapes=dynamic, strict=False).module()
    for length in (1, 3, 6):
        path, marginals = graph(scores[:2, :length], mask[:2, :length])
        assert torch.equal(path, crf.best_path(scores[:2, :length], *own, mask[:2, :length])[0])
        torch.testing.assert_close(marginals, crf.log_marginals(scores[:2, :length], *own, mask[:2, :length]))


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("method", list(CALIBRATORS))
def test_calibrators_in_torch(method, classes):
    generator = np.random.default_rng(0)
    logits = generator.normal(size=(300, classes)) * 3
    y = (logits + generator.gumbel(size=logits.shape)).argmax(1)
    fitted = CALIBRATORS[method](logits, y)
    found = TorchCalibrator(fitted)(torch.as_tensor(logits)).numpy()
    assert np.abs(found - fitted(logits)).max() < 1e-9


def test_what_bytes_cost_is_said_for_boxes_and_rows_of_several_lengths():
    assert loss({"boxes": np.zeros((2, 1, 4)), "count": np.array([1, 0])}, {"count": np.array([1, 1])}) == (
        "Against the exact model on 2 pictures: the same number of boxes in 1."
    )
    before = {"tags": [np.zeros(2), np.zeros(3)], "probabilities": [np.zeros((2, 2)), np.zeros((3, 2))]}
    after = {"tags": before["tags"], "probabilities": [np.full((2, 2), 0.5), np.zeros((3, 2))]}
    assert (
        loss(before, after) == "Against the exact model on 2 rows: probabilities differ by at most 0.5, 0.2 on average."
    )
