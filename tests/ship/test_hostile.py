"""Run folders that somebody prepared: each is refused with one sentence, at once, and nothing in them is run."""

import json
import pickle
import shutil
import struct
import time

import pytest

import wonderland
from tests import runs
from tests.fuzz import mutate_files as mutate
from wonderland.core import WonderlandError


@pytest.fixture
def run(tmp_path):
    shutil.copytree(runs.classifier().folder, tmp_path / "run")
    shutil.copy(runs.classifier().folder.parent / "table.csv", tmp_path)
    return tmp_path / "run"


def change(folder, name, alter):
    path = folder / name
    value = json.loads(path.read_text())
    alter(value)
    path.write_text(json.dumps(value))


def refused(folder) -> str:
    with pytest.raises(WonderlandError) as caught:
        wonderland.load(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


class Evil:
    def __reduce__(self):
        return (print, ("code ran",))


def test_a_pickle_named_safetensors(run, capsys):
    (run / "model.safetensors").write_bytes(pickle.dumps(Evil()))
    assert (
        refused(run) == f"{run / 'model.safetensors'} is not a safetensors file: it is damaged, cut short or not ours."
    )
    assert "code ran" not in capsys.readouterr().out


@pytest.mark.parametrize("name", ["model.safetensors", "preprocess.safetensors"])
def test_a_truncated_file(run, name):
    whole = (run / name).read_bytes()
    for size in (0, 5, len(whole) // 2, len(whole) - 1):
        (run / name).write_bytes(whole[:size])
        assert refused(run) == f"{run / name} is not a safetensors file: it is damaged, cut short or not ours."


def test_a_header_of_two_gigabytes(run):
    (run / "model.safetensors").write_bytes(struct.pack("<Q", 2 << 30) + b"{" * 1000)
    assert "is not a safetensors file" in refused(run)


@pytest.mark.parametrize(
    "name", ["os.system", "wonderland.core.files.write_text", "nn.MemberLinear", "models.", "__builtins__"]
)
def test_a_model_outside_the_closed_set(run, name):
    change(run, "config.json", lambda config: config["recipe"]["model"].update(part=name, arguments={}))
    said = refused(run)
    if name == "nn.MemberLinear":  # a module of ours, which is no whole model
        assert said == "nn.MemberLinear cannot be built without members: write MemberLinear(members=...)."
    else:
        assert "is not a part of Wonderland, so it is not built." in said


@pytest.mark.parametrize("name", ["tasks.Classification", "optim.warmup_cosine", "data.Augment"])
def test_a_part_that_is_not_a_model(run, name):
    change(run, "config.json", lambda config: config["recipe"]["model"].update(part=name, arguments={}))
    assert refused(run) == f"{name} is not a model."


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"dim": 1 << 50}, "a size above the limit"),
        ({"dim": 1 << 23, "depth": 1 << 23}, "more layers than its weights file holds"),
        ({"dim": -4}, "TableNet needs at least one column"),
        ({"dim": "wide"}, "TableNet needs dim to be a whole number, not 'wide'."),
        ({"sigmas": [0.1] * 50_000, "dropout": [0.0] * 50_000}, "the model's description says"),
        ({"widht": 3}, "has no argument 'widht'"),
    ],
)
def test_absurd_arguments(run, arguments, words):
    change(run, "config.json", lambda config: config["recipe"]["model"]["arguments"].update(arguments))
    assert words in refused(run)


def test_a_part_that_is_not_a_task(run):
    change(run, "config.json", lambda config: config["recipe"].update(task=config["recipe"]["model"]))
    assert refused(run) == "models.TableNet is not a task."


def test_an_ensemble_of_another_size_than_the_model(run):
    members = json.loads((run / "config.json").read_text())["recipe"]["ensemble"]["members"]
    change(
        run, "config.json", lambda config: config["recipe"]["ensemble"].update(members=10**6, folds=None, variants=1)
    )
    mutate.sign_again(run)
    assert refused(run) == f"{run}: config.json names 1,000,000 ensemble members, and the model has {members}."


def test_path_traversal(run, tmp_path):
    (tmp_path / "secret").write_text("s")
    change(run, "trust.json", lambda trust: trust["inputs"].update({"../secret": "0"}))
    assert refused(run) == f"{run / 'trust.json'} is not a run's record of trust: it is damaged or not ours."


@pytest.mark.parametrize("name", ["config.json", "trust.json", "preprocess.json", "model.safetensors"])
def test_links_out_of_the_folder(run, tmp_path, name):
    (run / name).rename(tmp_path / "elsewhere")
    (run / name).symlink_to(tmp_path / "elsewhere")
    assert refused(run) == f"{run / name} is a link that leads out of its folder, so it is not read."


def test_weights_of_another_run(run):
    shutil.copy(runs.regressor().folder / "model.safetensors", run)
    assert "do not belong together" in refused(run) or "has shape" in refused(run)


def test_files_that_were_changed_since(run):
    change(run, "preprocess.json", lambda saved: saved.update(ignored=["x"]))
    assert (
        refused(run)
        == f"{run / 'preprocess.json'} is not the file that trust.json was measured with: one of them was changed."
    )


@pytest.mark.parametrize("name", ["config.json", "trust.json", "preprocess.json"])
@pytest.mark.parametrize(
    "text", ["", "[]", "{}", "null", "[" * 100_000, '{"format": 1}', '{"format": 1, "recipe": 3}', "\x00"]
)
def test_json_that_is_not_ours(run, name, text):
    (run / name).write_text(text)
    refused(run)


def test_a_huge_json_file(run):
    with (run / "config.json").open("wb") as file:
        file.truncate(3 << 30)
    assert refused(run) == (
        f"{run / 'config.json'} has 3 GiB; the limit is 16 MiB. If you trust it, raise the limit: WONDERLAND_LIMITS=json_bytes=3GiB."
    )


def test_a_folder_without_a_run(tmp_path):
    assert refused(tmp_path / "none") == f"There is no run in {tmp_path / 'none'}: the folder does not exist."
    assert refused(tmp_path) == f"{tmp_path} is not a run: it has no config.json."


def test_a_run_that_is_not_finished(run):
    (run / "trust.json").unlink()
    assert refused(run) == f"The run in {run} is not finished. Continue it with: wonderland fit --resume {run}"


def replaced(run, change):
    """Weights that were changed by somebody who also wrote a fresh digest."""
    from wonderland.core import load_tensors, save_tensors, sha256

    tensors, meta = load_tensors(run / "model.safetensors")
    save_tensors(run / "model.safetensors", {name: change(tensor) for name, tensor in tensors.items()}, meta)
    change_trust = {"model.safetensors": sha256(run / "model.safetensors")}
    change_json = json.loads((run / "trust.json").read_text())
    change_json["inputs"] |= change_trust
    (run / "trust.json").write_text(json.dumps(change_json))


def test_weights_of_another_type_or_not_finite(run):
    replaced(run, lambda tensor: tensor.double())
    assert "is of type F64, but the model's description says F32" in refused(run)
    replaced(run, lambda tensor: tensor.float() if tensor.dtype.itemsize == 8 else tensor)
    replaced(run, lambda tensor: tensor * float("nan") if tensor.is_floating_point() else tensor)
    assert "not finite" in refused(run) or "is of type" in refused(run)


@pytest.mark.parametrize(
    ("name", "value"),
    [("temperature", 1e-320), ("temperature", 10**400), ("level", 10**400), ("shares", [0.2] * 5), ("shares", [10**400]),
     ("scores", [[]] * 5), ("measured", None), ("measured", {"test": 3}), ("inputs", {}), ("inputs", 5)],
)  # fmt: skip
def test_invalid_trust_json(run, name, value):
    change(run, "trust.json", lambda trust: trust.update({name: value}))
    refused(run)


@pytest.mark.parametrize("classes", [5, None, "ab", [1, 2], ["a", "a"], ["high", "other"]])
def test_invalid_classes(run, classes):
    change(run, "config.json", lambda config: config["recipe"]["task"]["arguments"].update(classes=classes))
    refused(run)


@pytest.mark.parametrize(
    ("name", "value"),
    [("threads", 10**6), ("threads", "x"), ("seed", -1), ("level", "a"), ("split", None), ("source", 5), ("source", {}),
     ("recipe", {"folds": "x"})],
)  # fmt: skip
def test_invalid_config(run, name, value):
    change(run, "config.json", lambda config: config.update({name: value}))
    refused(run)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("steps", "x"),
        ("lr", None),
        ("optimizer", 3),
        ("optimizer", None),
        ("optimizer", {"part": "os.system", "arguments": {}}),
        ("schedule", {"part": "optim.nothing", "arguments": {}}),
        ("learner", {"part": "models.TableNet", "arguments": {}}),
        ("learner", {}),
        ("augment", {"part": "data.Augment", "arguments": {"zoom": 3}}),
        ("ensemble", "x"),
        ("ensemble", {"members": "x"}),
        ("ensemble", {"members": 15, "folds": 4}),
        ("ensemble", {"members": 15, "folds": 5, "variants": 0}),
        ("evaluate_every", 0),
        ("workers", None),
        ("betas", 3),
    ],
)
def test_a_run_with_an_invalid_recipe_is_not_resumed(run, name, value):
    change(run, "config.json", lambda config: config["recipe"].update({name: value}))
    with pytest.raises(WonderlandError):
        wonderland.fit(resume=run)


@pytest.mark.parametrize("kind", ["image", "poem"])
def test_a_run_of_another_kind_of_data_is_not_resumed(run, kind):
    change(run, "config.json", lambda config: config["source"].update(kind=kind))
    for how in ({"resume": run}, {"source": run.parent / "table.csv", "target": "risk", "out": run, "steps": 60}):
        with pytest.raises(WonderlandError):
            wonderland.fit(**how)


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["header", "layers", "json", "nested", "cut"])
def test_a_refusal_takes_less_than_a_second(run, damage):
    if damage == "header":
        (run / "model.safetensors").write_bytes(struct.pack("<Q", 2 << 30) + b"{" * 1000)
    elif damage == "layers":
        many = {"dim": 1 << 23, "depth": 1 << 23}
        change(run, "config.json", lambda config: config["recipe"]["model"]["arguments"].update(many))
    elif damage == "json":
        with (run / "config.json").open("wb") as file:
            file.truncate(3 << 30)
    elif damage == "nested":
        (run / "preprocess.json").write_text("[" * 100_000)
    else:
        (run / "model.safetensors").write_bytes((run / "model.safetensors").read_bytes()[:-1])
    began = time.monotonic()
    refused(run)
    assert time.monotonic() - began < 1
