"""Merging folders: checkpoints become a checkpoint, runs a run that is calibrated anew."""

import json

import pytest
import torch
import transformers

import wonderland
from wonderland import checkpoints
from wonderland.cli.main import main
from wonderland.core import WonderlandError
from wonderland.road.merging import merge

transformers.logging.set_verbosity_error()
transformers.utils.logging.disable_progress_bar()


def checkpoint(folder, seed, architecture="GPT2LMHeadModel"):
    torch.manual_seed(seed)
    config = transformers.GPT2Config(vocab_size=13, n_positions=8, n_embd=8, n_layer=1, n_head=2, num_labels=3)
    getattr(transformers, architecture)(config).save_pretrained(folder)
    return folder


def test_checkpoints_become_one_that_transformers_reads(tmp_path, capsys):
    one, two, base = (checkpoint(tmp_path / str(seed), seed) for seed in (1, 2, 3))
    words = ["merge", str(one), str(two), "-o", str(tmp_path / "out"), "--method", "task", "--base", str(base)]
    assert main([*words, "--scale", "0.5"]) == 0
    assert f"wonderland fit DATA --from {tmp_path / 'out'}" in " ".join(capsys.readouterr().out.split())
    models = [checkpoints.load_pretrained(folder).state_dict() for folder in (one, two, base)]
    back = transformers.GPT2LMHeadModel.from_pretrained(tmp_path / "out")
    merged = checkpoints.load_pretrained(tmp_path / "out").state_dict()
    for name, value in merged.items():
        torch.testing.assert_close(value, 0.5 * (models[0][name] + models[1][name]))
    assert back.config.n_embd == 8
    assert json.loads((tmp_path / "out/merged.json").read_text())["method"] == "task"


def test_classifiers_are_merged_over_the_trunk_that_they_began_from(tmp_path):
    one, two = (checkpoint(tmp_path / str(seed), seed, "GPT2ForSequenceClassification") for seed in (1, 2))
    merge([one, two], tmp_path / "out", method="task", base=checkpoint(tmp_path / "base", 3), scale=0.0)
    merged, base = (checkpoints.load_pretrained(tmp_path / name).state_dict() for name in ("out", "base"))
    torch.testing.assert_close(merged["trunk.embedding.weight"], base["embedding.weight"])
    heads = [checkpoints.load_pretrained(folder).state_dict()["head.weight"] for folder in (one, two)]
    torch.testing.assert_close(merged["head.weight"], sum(heads) / 2)


def test_what_cannot_be_merged_is_told(tmp_path):
    one, two = (checkpoint(tmp_path / str(seed), seed) for seed in (1, 2))
    for sources, out, words in [
        ([one, tmp_path / "none"], "out", f"There is no checkpoint in {tmp_path / 'none'}: the folder does not exist."),
        ([one, two], "1", f"There are files in {tmp_path / '1'}: name another folder for the merged model."),
    ]:
        with pytest.raises(WonderlandError) as error:
            merge(sources, tmp_path / out)
        assert str(error.value) == words


def test_a_share_that_is_no_number_is_told(tmp_path, capsys):
    assert main(["merge", "a", "b", "-o", str(tmp_path / "out"), "--shares", "one"]) == 2
    assert capsys.readouterr().err == "wonderland: --shares is a list of numbers such as 0.7,0.3, not 'one'.\n"


@pytest.mark.slow
def test_runs_become_a_run_that_is_measured_anew(tmp_path, capsys):
    runs = [wonderland.fit("iris", steps=30, lr=lr, out=tmp_path / f"{lr}", progress=False) for lr in (0.003, 0.01)]
    assert main(["merge", *(str(run.folder) for run in runs), "-o", str(tmp_path / "out")]) == 0
    assert "Test: 30 rows" in capsys.readouterr().out
    merged = wonderland.load(tmp_path / "out")
    for name, value in merged.model.state_dict().items():
        if value.is_floating_point():
            torch.testing.assert_close(value, sum(run.model.state_dict()[name] for run in runs) / 2)
    other = wonderland.fit("iris", steps=2, seed=5, out=tmp_path / "other", progress=False)
    with pytest.raises(WonderlandError) as error:
        merge([runs[0].folder, other.folder], tmp_path / "never")
    assert "so that a merged model would be tested on rows that one of them learned" in str(error.value)
