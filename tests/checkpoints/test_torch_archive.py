"""Files of torch.save are read without executing anything; what is not a tensor is refused."""

import io
import random
import zipfile
from collections import OrderedDict

import pytest
import torch

from wonderland.checkpoints import load_efficientnet_lite, read_torch_archive
from wonderland.core import WonderlandError
from wonderland.models import EfficientNetLite


class Opens:
    """What a hostile file holds: a call of a function."""

    def __reduce__(self):
        return (open, ("/tmp/never-written", "w"))


def tensors():
    base = torch.arange(12.0).view(3, 4)
    return OrderedDict(
        plain=base, turned=base.T, part=base[1:, ::2], whole=torch.tensor(7), half=torch.ones(2).half(), flags=torch.tensor([True, False]),
        parameter=torch.nn.Parameter(torch.ones(2, 2)), empty=torch.empty(0, 3), brain=torch.ones(3, dtype=torch.bfloat16),
    )  # fmt: skip


def saved(value, zipped=True):
    file = io.BytesIO()
    torch.save(value, file, _use_new_zipfile_serialization=zipped)
    return file.getvalue()


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("inside", ["", "state_dict"])
def test_tensors_come_back_as_they_were(tmp_path, zipped, inside):
    value = {inside: tensors(), "epoch": 3, "lr": 0.5, "best": None} if inside else tensors()
    path = tmp_path / "model.pth"
    path.write_bytes(saved(value, zipped))
    found = read_torch_archive(path)
    assert list(found) == list(tensors())
    for name, tensor in tensors().items():
        assert found[name].dtype == tensor.dtype
        assert torch.equal(found[name], tensor.detach())
        assert not found[name].requires_grad


def test_a_module_keeps_its_versions_and_its_weights(tmp_path):
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    (tmp_path / "net.pth").write_bytes(saved(net.state_dict(), zipped=False))
    found = read_torch_archive(tmp_path / "net.pth")
    assert all(torch.equal(found[name], tensor) for name, tensor in net.state_dict().items())


@pytest.mark.parametrize("zipped", [True, False])
def test_files_with_anything_else_are_refused(tmp_path, zipped):
    path = tmp_path / "model.pth"
    for value, words in (
        ({"a": Opens()}, r"it names (_?io|builtins)\.open, which is no tensor"),
        (torch.nn.Linear(2, 2), r"it names torch\.nn\.modules\.linear\.Linear, which is no tensor"),
        ({"a": "text"}, "the entry 'a' is no tensor"),
        ([torch.ones(2)], "it holds no dict of tensors"),
    ):
        path.write_bytes(saved(value, zipped))
        with pytest.raises(WonderlandError, match=rf"model\.pth is not a file of plain tensors: {words}\.$"):
            read_torch_archive(path)
    path.write_bytes(b"hello")
    with pytest.raises(WonderlandError, match=r"model\.pth is not a file of torch\.save, or it is damaged\.$"):
        read_torch_archive(path)
    with pytest.raises(WonderlandError, match=r"other\.pth is missing, or no file\.$"):
        read_torch_archive(tmp_path / "other.pth")


def rewritten(content, change):
    """A zipped file with its program changed."""
    source, target = zipfile.ZipFile(io.BytesIO(content)), io.BytesIO()
    with zipfile.ZipFile(target, "w") as archive:
        for info in source.infolist():
            data = source.read(info)
            archive.writestr(info.filename, change(data) if info.filename.endswith("data.pkl") else data)
    return target.getvalue()


def test_sizes_beyond_the_storage_are_refused(tmp_path):
    content, path = saved({"a": torch.ones(3, 4)}), tmp_path / "model.pth"
    for change in (
        lambda program: program.replace(b"K\x03K\x04\x86", b"K\x03K\x7f\x86"),
        lambda program: program.replace(b"K\x04K\x01\x86", b"K\x7fK\x7f\x86"),
        lambda program: program.replace(b"K\x0c", b"J\xff\xff\xff\x7f"),
    ):
        path.write_bytes(rewritten(content, change))
        assert path.read_bytes() != rewritten(content, lambda program: program)
        with pytest.raises(WonderlandError, match="is not a file of plain tensors"):
            read_torch_archive(path)


@pytest.mark.parametrize("zipped", [True, False])
def test_mutated_files_are_read_or_refused(tmp_path, zipped):
    content, dice, path = saved(tensors(), zipped), random.Random(0), tmp_path / "model.pth"
    outcomes = set()
    for _ in range(250):
        damaged = bytearray(content)
        for _ in range(dice.randint(1, 4)):
            damaged[dice.randrange(len(damaged))] = dice.randrange(256)
        damaged = damaged[: dice.choice([None, None, dice.randrange(len(damaged))])]
        path.write_bytes(rewritten(content, _noise(dice)) if zipped and dice.random() < 0.7 else bytes(damaged))
        try:
            outcomes.add(type(read_torch_archive(path)).__name__)
        except WonderlandError:
            outcomes.add("refused")
    assert outcomes == {"dict", "refused"}


def _noise(dice):
    def change(program):
        damaged = bytearray(program)
        for _ in range(dice.randint(1, 3)):
            damaged[dice.randrange(len(damaged))] = dice.randrange(256)
        return bytes(damaged)

    return change


def test_weights_of_efficientnet_lite_find_their_places(tmp_path):
    net = EfficientNetLite(classes=7)
    names = {
        "stem.conv": "_conv_stem",
        "stem.norm": "_bn0",
        "last.conv": "_conv_head",
        "last.norm": "_bn1",
        "head": "_fc",
    }
    inner = {"expand.conv": "_expand_conv", "expand.norm": "_bn0", "depthwise.conv": "_depthwise_conv",
             "depthwise.norm": "_bn1", "project.conv": "_project_conv", "project.norm": "_bn2"}  # fmt: skip
    torch.manual_seed(0)
    stored = {}
    for name, tensor in net.state_dict().items():
        owner, _, rest = name.rpartition(".")
        block = owner.split(".", 2)
        published = f"_blocks.{block[1]}.{inner[block[2]]}" if block[0] == "blocks" else names[owner]
        stored[f"{published}.{rest}"] = torch.rand_like(tensor) if tensor.is_floating_point() else tensor
    (tmp_path / "lite0.pth").write_bytes(saved(stored, zipped=False))
    loaded = load_efficientnet_lite(tmp_path / "lite0.pth")
    assert torch.equal(loaded.blocks[3].depthwise.conv.weight, stored["_blocks.3._depthwise_conv.weight"])
    assert torch.equal(loaded.head.weight, stored["_fc.weight"])
    del stored["_fc.bias"]
    (tmp_path / "lite0.pth").write_bytes(saved(stored, zipped=False))
    with pytest.raises(
        WonderlandError, match=r"does not hold EfficientNet-Lite0: head\.bias is missing, unknown or of another shape"
    ):
        load_efficientnet_lite(tmp_path / "lite0.pth")


def test_the_published_number_of_parameters():
    with torch.device("meta"):
        net = EfficientNetLite.lite0()
    assert sum(parameter.numel() for parameter in net.parameters()) == 4_652_008
