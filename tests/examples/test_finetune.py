"""The lab of fine-tuning: chains have the loss they are said to have, and every stated number is reached."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from examples.finetune.__main__ import main
from examples.finetune.chains import FIRST, LENGTH, SURE, TOKENS, best, successors, text


def test_the_best_loss_is_that_of_the_chain_itself():
    order = successors(2)
    found = text(order, 4000, 0)[:, 1:] - FIRST
    rest = (1 - SURE) / TOKENS
    usual = order[found[:, :-1]] == found[:, 1:]
    later = -torch.where(usual, torch.tensor(SURE + rest), torch.tensor(rest)).log().sum(1).mean()
    first = torch.tensor(float(TOKENS)).log()
    assert abs(float((later + first) / LENGTH) - best()) < 0.01


@pytest.mark.slow
def test_every_stated_number_is_reached(tmp_path, capsys):
    assert main(["--out", str(tmp_path)]) == 0
    assert "MISSED" not in capsys.readouterr().out
