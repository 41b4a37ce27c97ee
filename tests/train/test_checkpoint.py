import os

import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.train import Checkpoints


def test_the_last_checkpoints_are_kept_and_older_ones_deleted(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    assert checkpoints.newest() is None
    for step in (1, 2, 3):
        checkpoints.save(step, {"step": step, "x": torch.full((3,), float(step))})
    assert [step for step, _ in checkpoints.files()] == [3, 2]
    assert checkpoints.newest()["step"] == 3


@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "text"])
def test_a_damaged_checkpoint_is_skipped(tmp_path, damage):
    checkpoints = Checkpoints(tmp_path)
    for step in (1, 2):
        checkpoints.save(step, {"step": step, "x": torch.ones(100)})
    path = checkpoints.files()[0][1]
    whole = bytearray(path.read_bytes())
    if damage == "flip":
        whole[-7] ^= 1
    path.write_bytes({"cut": whole[:-9], "flip": whole, "empty": b"", "text": b"hello"}[damage])
    assert checkpoints.newest()["step"] == 1
    checkpoints.files()[1][1].write_bytes(b"")
    with pytest.raises(WonderlandError, match=r"^No whole checkpoint is left in .* Start again with --overwrite\.$"):
        checkpoints.newest()


def test_unfinished_files_of_a_killed_process_are_not_read(tmp_path):
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, {"step": 1})
    (tmp_path / ".step-000000002.safetensors.123.part").write_bytes(b"half")
    assert checkpoints.newest()["step"] == 1
    assert len(os.listdir(tmp_path)) == 2


def test_tied_weights_are_stored_apart(tmp_path):
    shared = torch.arange(4.0)
    checkpoints = Checkpoints(tmp_path)
    checkpoints.save(1, {"a": shared, "b": shared, "c": shared[:2]})
    found = checkpoints.newest()
    assert torch.equal(found["a"], found["b"])
    assert torch.equal(found["c"], shared[:2])


def test_saving_is_spaced_by_what_it_costs(tmp_path):
    checkpoints = Checkpoints(tmp_path, least=1000)
    assert not checkpoints.due()
    assert Checkpoints(tmp_path, least=0).due()
