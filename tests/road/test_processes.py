"""Several processes fit one model: killed, stopped and continued by another number of them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.road.test_kill import KEPT, begun, command, quiet, table
from wonderland.core import WonderlandError
from wonderland.road import fit

BITS = ("model.safetensors", "metrics.jsonl", "trust.json")


def test_a_number_of_processes_that_cannot_be(tmp_path):
    done = quiet(command("fit", table(tmp_path), "--processes", 0))
    assert done.returncode == 2
    assert done.stderr.strip() == (
        "wonderland: processes is a whole number from 1 to 1024, and restarts at least 0, not 0 and 3."
    )


def test_rates_grow_with_the_batch(tmp_path):
    source = table(tmp_path)
    rates = {}
    for scale in (None, "linear", "root"):
        out = tmp_path / f"run-{scale}"
        options = {} if scale is None else {"scale_lr": scale, "batch_size": 2 * rates["size"]}
        run = fit(source, out=out, steps=2, leaderboard="none", model="TableNet", **options)
        rates[scale], rates["size"] = run.config["recipe"]["lr"], rates.get("size", run.config["recipe"]["batch_size"])
    assert rates["linear"] == pytest.approx(rates[None] * run.config["recipe"]["batch_size"] / rates["size"])
    assert rates["root"] == pytest.approx(rates[None] * (run.config["recipe"]["batch_size"] / rates["size"]) ** 0.5)
    with pytest.raises(WonderlandError) as error:
        fit(source, out=tmp_path / "no", lr=0.1, scale_lr="linear")
    assert str(error.value) == "scale_lr changes the rate of the recipe: leave out lr, or scale_lr."


def workers_of(launcher: subprocess.Popen) -> list[int]:
    """The processes that a launcher has started."""
    children = Path(f"/proc/{launcher.pid}/task/{launcher.pid}/children").read_text().split()
    return [int(child) for child in children]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_a_killed_process_is_begun_again_with_the_same_bits(tmp_path):
    source, straight, cut = table(tmp_path), tmp_path / "straight", tmp_path / "cut"
    options = ("--quiet", "--steps", 300, "--processes", 2, "--leaderboard", "none")
    done = quiet(command("fit", source, "--out", straight, *options))
    assert done.returncode == 0, done.stderr
    launcher = begun(command("fit", source, "--out", cut, *options), cut)
    victim = workers_of(launcher)[1]
    os.kill(victim, signal.SIGKILL)
    _, said = launcher.communicate(timeout=200)
    assert launcher.returncode == 0, said
    for name in KEPT:
        assert (cut / name).read_bytes() == (straight / name).read_bytes(), name


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="finds processes in /proc")
def test_a_run_restarted_by_hand_has_the_bits_of_one_that_restarts_itself(tmp_path):
    source, by_hand = table(tmp_path), tmp_path / "hand"
    options = ("--quiet", "--steps", 300, "--processes", 2, "--leaderboard", "none")
    launcher = begun(command("fit", source, "--out", by_hand, *options, "--restarts", 0), by_hand)
    os.kill(workers_of(launcher)[1], signal.SIGKILL)
    launcher.communicate(timeout=100)
    assert launcher.returncode == 137
    done = quiet(command("fit", "--resume", by_hand, "--quiet", "--processes", 2))
    assert done.returncode == 0, done.stderr
    straight = tmp_path / "straight"
    assert quiet(command("fit", source, "--out", straight, *options)).returncode == 0
    for name in BITS:
        assert (by_hand / name).read_bytes() == (straight / name).read_bytes(), name


@pytest.mark.slow
def test_stopped_with_two_processes_and_finished_with_one(tmp_path):
    source, out = table(tmp_path), tmp_path / "run"
    launcher = begun(command("fit", source, "--out", out, "--steps", 100_000, "--processes", 2), out)
    time.sleep(0.5)
    launcher.terminate()
    _, said = launcher.communicate(timeout=100)
    assert launcher.returncode == 143, said
    assert said.strip().endswith(f"Continue with: wonderland fit --resume {out}")


@pytest.mark.slow
def test_torchrun_and_sharded_weights(tmp_path):
    source = table(tmp_path)
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
    words = ["wonderland", "fit", str(source), "--steps", "20", "--quiet", "--leaderboard", "none"]
    whole, sharded = tmp_path / "whole", tmp_path / "sharded"
    done = quiet([*torchrun, *words, "--out", str(whole)])
    assert done.returncode == 0, done.stderr
    done = quiet([*torchrun, *words, "--out", str(sharded), "--shard"])
    assert done.returncode == 0, done.stderr
    assert (whole / "trust.json").exists()
    assert (sharded / "trust.json").exists()
