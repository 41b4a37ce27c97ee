"""Generation: p-values that hold their level, comparisons of samples, and what the ability draws and writes."""

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image

import wonderland
from wonderland.cli.main import main
from wonderland.core import WonderlandError
from wonderland.tasks import Generation, SampleTrust
from wonderland.tasks.abilities.drawing import sheet
from wonderland.tasks.generation import compared


def test_p_values_hold_their_level():
    """With n calibration scores, a new one of the same distribution has a p-value of at most k / (n + 1) with that probability."""
    generator = np.random.default_rng(0)
    trust = SampleTrust(generator.normal(size=999).tolist(), 0.9)
    p = trust.p_values(generator.normal(size=20_000))
    assert np.mean(p <= 0.1) == pytest.approx(0.1, abs=0.03)
    assert trust.p_values(np.array([1e9]))[0] == pytest.approx(1 / 1000)
    assert trust.p_values(np.array([-1e9]))[0] == 1.0


def test_equal_distributions_cannot_be_told_apart_and_others_can():
    generator = torch.Generator().manual_seed(0)
    a, b = (torch.randn(400, 3, generator=generator) for _ in range(2))
    same, other = compared(a, b), compared(a, b + 1)
    assert same["two_sample"] < 0.58 < 0.8 < other["two_sample"]
    assert same["frechet"] < 0.1 < 2 < other["frechet"]
    assert abs(same["mmd"]) < 0.01 < other["mmd"]
    assert same["precision"] > 0.85 > 0.2 > compared(a, b + 4)["precision"]
    assert compared(a[:5], b[:5]) == {}


def test_a_sheet_has_every_image_once():
    images = np.arange(10, dtype=np.uint8)[:, None, None].repeat(2, 1).repeat(3, 2)
    canvas = sheet(images)
    assert canvas.shape == (2 * 4 - 2, 8 * 5 - 2)
    assert set(np.unique(canvas)) == {*range(10), 255}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    pytest.importorskip("sklearn")
    return wonderland.fit("digits", task="generate", out=tmp_path_factory.mktemp("g") / "run", steps=4, threads=1)


def test_diffusion_of_images_has_the_network_of_flow_matching():
    pytest.importorskip("sklearn")
    dataset, kind = wonderland.kinds.open("digits", task="generate"), wonderland.kinds.KINDS["image"]
    parts = kind.split(dataset, test=0.2, seed=0)
    encoder = kind.encoder(dataset, parts)
    recipe = kind.recipe(dataset, parts, encoder, kind.task(dataset, parts, encoder))
    named = kind.named_recipe(recipe, "models.Diffusion", dataset, parts)
    assert named.model.name == "models.Diffusion"
    assert named.model.arguments["net"] == recipe.model.arguments["net"]


def test_images_are_drawn_with_the_levels_of_the_training_images(run):
    images = run.ability("generate")(12, seed=3)
    assert images.shape == (12, 8, 8)
    assert images.dtype == np.uint8
    assert set(np.unique(images)) <= {round(255 * level / 16) for level in range(17)} | set(run.encoder.levels)
    assert np.array_equal(images, run.ability("generate")(12, seed=3))
    assert not np.array_equal(images, run.ability("generate")(12, seed=4))
    assert "Samples" in (run.folder / "report.html").read_text()


def test_the_shell_writes_a_sheet_a_folder_or_an_array(run, tmp_path, capsys):
    folder = str(run.folder)
    for out in ("s.png", "s.npy", "pictures"):
        assert main(["generate", folder, "-n", "9", "-o", str(tmp_path / out), "--label", "7", "--guidance", "2"]) == 0
        assert capsys.readouterr().out == f"9 examples written to {tmp_path / out}\n"
    with Image.open(tmp_path / "s.png") as picture:
        assert picture.size == (8 * 10 - 2, 2 * 10 - 2)
    assert np.load(tmp_path / "s.npy", allow_pickle=False).shape == (9, 8, 8)
    assert len(list((tmp_path / "pictures").glob("*.png"))) == 9
    for words, said in {
        ("--label", "11"): "There is no class '11'. Did you mean '1'?",
        ("-n", "0"): "From 1 to 100,000 examples are drawn at once, not 0.",
        ("--guidance", "-1"): "guidance is a number from 0 to 100, not -1.0.",
        ("--prompt", "a"): "This run draws examples: leave --prompt out.",
        ("-o", "a.gif"): "Images are written to a .png or .npy file or a folder, not a.gif.",
    }.items():
        assert main(["generate", folder, *words]) == 2
        assert capsys.readouterr().err.strip() == f"wonderland: {said}"


def test_images_without_classes(tmp_path):
    generator = np.random.default_rng(0)
    (tmp_path / "flat").mkdir()
    for place in range(30):
        Image.fromarray(generator.integers(0, 255, (8, 8), dtype=np.uint8)).save(tmp_path / "flat" / f"{place}.png")
    run = wonderland.fit(
        tmp_path / "flat", task="generate", model="VAE(dim=2)", steps=2, threads=1, out=tmp_path / "run"
    )
    assert run.ability("generate")(2).shape == (2, 8, 8)
    table = run.predict(tmp_path / "flat")
    assert list(table.columns)[-3:] == ["prediction", "score", "p"]
    with pytest.raises(WonderlandError) as told:
        run.ability("generate")(1, label="cat")
    assert str(told.value) == "This run was fitted without classes: leave the label (--label) out."


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"augment": "PhotoAugment()"}, "augment is for images with something to predict: leave it out to generate images."),
        ({"test": "iris"}, "A test set of its own is for tables and labelled lines; images to generate are split by themselves."),
        ({"model": "ResNet(depths=[1], dims=[4])"}, "is no generative model: it needs objective and sample"),
    ],
)  # fmt: skip
def test_what_is_not_for_images_to_generate(options, words, tmp_path):
    pixels = np.zeros((30, 8, 8), np.uint8)
    pixels[::2] = 9
    with pytest.raises(WonderlandError) as told:
        wonderland.fit(pixels, task="generate", out=tmp_path / "run", steps=1, **options)
    assert words in str(told.value)


def test_a_run_that_draws_nothing_says_so(tmp_path, capsys):
    assert Generation(["a"]).check_model(torch.nn.Linear(1, 1), None).startswith("is no generative model")
    with pytest.raises(WonderlandError, match="Generation is given the names of its classes, or none"):
        Generation([1])
    frame = pd.DataFrame({"a": range(40), "b": [0, 1] * 20})
    with pytest.raises(WonderlandError) as told:
        wonderland.fit(frame, "b", task="generate", out=tmp_path / "run")
    assert str(told.value) == "A table to generate has no target: leave target and blend out."
