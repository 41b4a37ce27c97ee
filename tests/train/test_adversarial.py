"""Two players: each learns from its own loss, and an interrupted run goes on to the same bits."""

import numpy as np
import pytest

import wonderland
from wonderland.train import Adversarial
from wonderland.train.checkpoint import Checkpoints


def test_a_cut_run_goes_on_to_the_same_bits(tmp_path, monkeypatch):
    pixels = np.random.default_rng(0).integers(0, 255, (60, 8, 8), dtype=np.uint8)
    options = {"task": "generate", "model": "DCGAN(dim=2, latent=4)", "steps": 6, "threads": 1}
    whole = wonderland.fit(pixels, out=tmp_path / "whole", **options)
    plain, left = Adversarial.step, {"steps": 4}

    def cut(self, state, batch):
        left["steps"] -= 1
        if not left["steps"]:
            raise KeyboardInterrupt
        return plain(self, state, batch)

    monkeypatch.setattr(Checkpoints, "due", lambda self: True)
    monkeypatch.setattr(Adversarial, "step", cut)
    with pytest.raises(BaseException):  # noqa: B017 - however the loop passes an interruption on
        wonderland.fit(pixels, out=tmp_path / "cut", **options)
    monkeypatch.setattr(Adversarial, "step", plain)
    wonderland.fit(pixels, resume=tmp_path / "cut")
    for name in ("model.safetensors", "metrics.jsonl"):
        assert (tmp_path / "cut" / name).read_bytes() == (whole.folder / name).read_bytes()
