"""Cost sheets: predictions of time and memory, precisions, and sentences about what cannot be predicted."""

import torch
from torch import nn

from tests.runs import classifier, mixed
from wonderland.cli.main import main
from wonderland.road.costing import cost_of
from wonderland.understand import precisions, step_cost


def test_a_run_and_its_recipe_have_the_same_sheet(capsys):
    run = classifier()
    sheet = cost_of(run.folder)
    again = cost_of(mixed(), "risk", steps=60)
    assert (sheet.cost.parameters, sheet.steps) == (again.cost.parameters, 60)
    assert sheet.cost.parameters == sum(p.numel() for p in run.model.parameters())
    assert sheet.training_seconds > 60 * sheet.step.seconds
    assert main(["cost", str(run.folder), "--layers", "2"]) == 0
    said = capsys.readouterr().out
    for word in ("Machine", "Model", "Step", "Memory", "Training", "limited by"):
        assert word in said


def test_lines_are_continued_to_the_whole_batch():
    seen = []
    found = step_cost(seen.append, [(8, "a"), (16, "b"), (32, "c")], 64, seconds=0.01)
    assert found.tried == (8, 16, 32)
    assert found.peak_bytes > 1e7
    assert seen.count("a") >= 4
    assert found.rows == 64


def test_precisions_have_the_errors_of_their_digits():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))
    rows = {row.name: row for row in precisions(net, (torch.randn(32, 64),), ["float32", "bfloat16", "int8"])}
    assert rows["float32"].error < 1e-6 < rows["bfloat16"].error < 0.02
    assert 1e-4 < rows["int8"].error < 0.05
    assert rows["int8"].weight_bytes < 0.5 * rows["float32"].weight_bytes
    assert rows["int8"].note == "2 linear layers in int8"


def test_what_cannot_be_predicted_is_told_to_the_word(capsys, tmp_path):
    for words, message in (
        (["LeNet(classes=10, channels=1)", "--precision", "int4"], "There is no precision 'int4'. Did you mean 'int8'? Known are float32, bfloat16, int8, or all."),
        (["LeNet(classes=10, channels=1)", "--shapes", "4,2,9"], None),
        (["diabetes", "--model", "GLM"], "models.GLM is fitted in one step, without batches: there is no training step to predict."),
    ):  # fmt: skip
        assert main(["cost", *words]) == 2
        said = capsys.readouterr().err
        if message is not None:
            assert said == f"wonderland: {message}\n"
        else:
            assert said.startswith("wonderland: models.LeNet does not take inputs of shape 4x2x9 (")
            assert said.endswith("): give others with --shapes.\n")
