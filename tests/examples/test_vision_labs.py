"""Labs of images: on a few images and steps each runs, says what it measured, and misses its numbers."""

import gzip
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

sys.path.insert(0, str(Path(__file__).parents[2]))

from examples.drawn_digits.__main__ import drawn, fitted, sheet, tokenizers
from examples.fashion.__main__ import SCHEDULES, STATED, rate
from examples.fashion.__main__ import build as first_networks
from examples.fashion.__main__ import main as fashion
from examples.multi_view.__main__ import MIXERS, accuracy, digits
from examples.multi_view.__main__ import fitted as with_views
from examples.networks.__main__ import RATES, build
from examples.networks.__main__ import main as networks
from examples.style.__main__ import main as style


@pytest.fixture
def clothes(tmp_path):
    """Four IDX files in the place of Fashion-MNIST: the brightness of a band says the class."""
    for part, count in (("train", 400), ("t10k", 100)):
        y = np.arange(count) % 10
        x = np.random.default_rng(0).integers(0, 60, (count, 28, 28)).astype(np.uint8)
        for row, label in enumerate(y):
            x[row, 2 * label + 3 : 2 * label + 7] = 250
        head = struct.pack(">IIII", 2051, count, 28, 28)
        (tmp_path / f"{part}-images-idx3-ubyte.gz").write_bytes(gzip.compress(head + x.tobytes(), 1))
        labels = struct.pack(">II", 2049, count) + y.astype(np.uint8).tobytes()
        (tmp_path / f"{part}-labels-idx1-ubyte.gz").write_bytes(gzip.compress(labels, 1))
    return tmp_path


def test_the_first_networks_learn_and_are_held_to_the_book(clothes, capsys):
    words = ["--data", str(clothes), "--out", str(clothes / "out")]
    assert fashion([*words, "--only", "softmax,lenet_norm", "--epochs", "15"]) == 0
    assert capsys.readouterr().out.count("reached") == 2
    assert fashion([*words, "--only", "lenet,constant,cosine", "--epochs", "1", "--images", "20"]) == 1
    assert "test accuracy, LeNet, sigmoid and mean pooling: above 0.728 - MISSED" in capsys.readouterr().out
    assert (clothes / "out/schedules.svg").is_file()
    assert fashion(["--data", str(clothes / "none")]) == 2


def test_sizes_and_rates_of_the_book():
    sizes = {name: sum(p.numel() for p in first_networks(name).parameters()) for name in STATED}
    assert sizes == {"softmax": 7_850, "mlp": 203_530, "dropout": 269_322, "lenet": 61_706, "lenet_norm": 62_158}
    assert [round(rate("cosine", 30)(epoch), 4) for epoch in (0, 10, 20, 29)] == [0.3, 0.155, 0.01, 0.01]
    assert [rate("multi_step", 30)(epoch) for epoch in (0, 14, 15)] == [0.5, 0.5, 0.25]
    assert all(rate(name, 6)(5) > 0 for name in SCHEDULES)


def test_a_table_of_networks(clothes, capsys):
    words = ["--data", str(clothes), "--out", str(clothes / "out"), "--images", "32", "--epochs", "1"]
    assert networks([*words, "--only", "VGG-11,ResNet-18"]) == 1
    printed = capsys.readouterr().out
    assert "| VGG-11    |    910,666 |" in printed
    assert "test accuracy, ResNet-18: above 0.85 - MISSED" in printed
    x = torch.zeros(2, 1, 32, 32)
    assert all(build(name).eval()(x).shape == (2, 10) for name in RATES)


def test_views_of_digits():
    x, y, test_x, test_y = digits()
    for mixer in MIXERS.values():
        net = with_views(mixer, x[:64], y[:64], steps=2)
        assert 0 <= accuracy(net, test_x[:20], test_y[:20], 3) <= 1


def test_digits_are_drawn():
    _, _, images, y = digits()
    images = torch.nn.functional.interpolate(images, 8)
    tokens = tokenizers(images)["patches of 2 x 2"]
    model, bits = fitted(tokens, images, y, steps=2)
    made, classes = drawn(model, tokens, each=2)
    assert made.shape == (20, 1, 8, 8)
    assert bits > 0
    assert classes.bincount().tolist() == [2] * 10
    assert sheet(made).count("<rect") == 20 * 64


def test_a_photograph_in_the_style_of_another(tmp_path, capsys):
    draw = np.random.default_rng(0)
    for name in ("one", "two"):
        pixels = draw.integers(0, 256, (60, 56, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{name}.png")
    words = ["--content", str(tmp_path / "one.png"), "--out", str(tmp_path)]
    assert style(words) == 2
    assert "Name a photograph with --style FILE" in capsys.readouterr().err
    assert style([*words, "--style", str(tmp_path / "two.png"), "--steps", "2", "--train-steps", "2"]) in (0, 1)
    assert "data:image/png;base64," in (tmp_path / "picture.svg").read_text()


@pytest.mark.slow
def test_labs_without_files_reach_their_numbers(tmp_path):
    from examples.drawn_digits.__main__ import main as draw
    from examples.multi_view.__main__ import main as views

    assert draw(["--out", str(tmp_path)]) == 0
    assert views(["--out", str(tmp_path)]) == 0
