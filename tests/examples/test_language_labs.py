"""The labs of language learn what they say they do, on little of it."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[2]))

from examples.names_transformer import training as transformer
from examples.names_tree import training as tree
from examples.shakespeare import training as shakespeare
from examples.time_machine import training as time_machine
from examples.time_machine.__main__ import main as time_machine_lab
from examples.trec import questions
from examples.trec import training as trec
from wonderland.core import WonderlandError


def test_the_small_gpt_is_nanogpts():
    torch.manual_seed(0)
    model = shakespeare.network(65)
    assert sum(weight.numel() for weight in model.parameters()) == 804_096
    assert not any(name.endswith("bias") for name, _ in model.named_parameters())
    for name, weight in model.named_parameters():
        if weight.dim() > 1:
            wide = 0.02 / 8**0.5 if name.endswith(("out.weight", "outward.weight")) else 0.02
            assert abs(weight.std().item() / wide - 1) < 0.05, name
    update = shakespeare.optimizer(model, 2000)
    assert sorted({group["weight_decay"] for group in update.param_groups}) == [0.0, 0.1]
    # One block of the text, from each start.
    x, y = shakespeare.windows(torch.arange(100), torch.tensor([0, 5]), 3)
    assert x.tolist() == [[0, 1, 2], [5, 6, 7]]
    assert y.tolist() == [[1, 2, 3], [6, 7, 8]]


def test_the_small_gpt_streams_without_biases():
    model = shakespeare.network(12).eval()
    tokens = torch.randint(12, (2, 9))
    with torch.no_grad():
        said, state = model.stream(tokens[:, :4])
        for at in range(4, 9):
            more, state = model.stream(tokens[:, at : at + 1], state)
            said = torch.cat([said, more], 1)
        torch.testing.assert_close(said, model(tokens))


def test_questions_are_cut_as_kim_did(tmp_path):
    (tmp_path / "a.txt").write_text("2 What's the U.S. ?\n0 Who\n")
    read = questions.read(tmp_path / "a.txt")
    assert read == [(2, ["what", "'s", "the", "u", "s", "?"]), (0, ["who"])]
    numbers: dict[str, int] = {}
    found = questions.encode(read, numbers)
    assert found.tokens.tolist() == [[2, 3, 4, 5, 6, 7], [8, 0, 0, 0, 0, 0]]
    assert found.kinds.tolist() == [2, 0]
    assert questions.encode([(1, ["who", "me"])], numbers, unknown=1).tokens.tolist() == [[8, 1]]
    (tmp_path / "b.txt").write_text("what ?\n")
    with pytest.raises(WonderlandError, match=r"Line 1 of .* is not a number, a space and a question"):
        questions.read(tmp_path / "b.txt")


def test_textcnn_learns_toy_questions():
    torch.manual_seed(0)
    tokens = torch.randint(4, 30, (300, 8))
    kinds = torch.randint(2, (300,))
    tokens[torch.arange(300), torch.randint(8, (300,))] = kinds + 2
    model, curve = trec.train(questions.Questions(tokens, kinds), 30, 2, seed=0, epochs=3)
    assert curve[-1][1] > 0.9
    assert (model.head.weight.norm(dim=1) <= 3).all()


def test_windows_of_the_book():
    data = time_machine.windows("The Time Machine, by H. G. Wells [1898]\n" * 600)
    assert data.train.shape == (10_000, 33)
    assert data.test.shape == (5_000, 33)
    assert data.train[1, 0] == data.train[0, 1]
    with pytest.raises(WonderlandError, match="15,032 are needed: give the whole book"):
        time_machine.windows("The Time Machine")


@pytest.mark.parametrize(("cell", "kind", "depth"), [("rnn", "RNN", 1), ("lstm", "LSTM", 1), ("gru", "GRU", 2)])
def test_steps_are_those_of_torchs_layers_with_their_two_biases(cell, kind, depth):
    torch.manual_seed(0)
    model = time_machine.RNNLM(5, 4, cell=cell, depth=depth).double()
    peer = getattr(torch.nn, kind)(5, 4, num_layers=depth, batch_first=True).double()
    model.load_torch(peer)
    head = torch.nn.Linear(4, 5).double()
    head.load_state_dict(model.head.state_dict())
    weights = time_machine.with_multiplicity(model)
    theirs = [*peer.parameters(), *head.parameters()]
    optimizer = torch.optim.SGD(theirs, lr=4.0)
    for _ in range(4):
        rows = torch.randint(5, (6, 8))
        torch.nn.functional.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten()).backward()
        time_machine.update(weights, 4.0, max_norm=0.05)
        optimizer.zero_grad()
        hot = torch.nn.functional.one_hot(rows[:, :-1], 5).double()
        torch.nn.functional.cross_entropy(head(peer(hot)[0]).flatten(0, 1), rows[:, 1:].flatten()).backward()
        norm = torch.stack([weight.grad.square().sum() for weight in theirs]).sum().sqrt()
        for weight in theirs:
            weight.grad *= min(1.0, 0.05 / norm.item())
        optimizer.step()
    again = time_machine.RNNLM(5, 4, cell=cell, depth=depth).double().load_torch(peer)
    for name, value in model.layers.named_parameters():
        torch.testing.assert_close(value, again.layers.get_parameter(name))
    torch.testing.assert_close(model.head.weight, head.weight)


def test_update_gates_may_begin_with_more_to_write():
    torch.manual_seed(0)
    plain = time_machine.initial_model("gru", 2, 5)
    torch.manual_seed(0)
    writing = dict(time_machine.initial_model("gru", 2, 5, lower_update_bias=True).named_parameters())
    for name, weight in plain.named_parameters():
        less = torch.zeros_like(weight)
        if name.endswith("mixer.bias"):
            less[32:64] = 1
        torch.testing.assert_close(writing[name], weight - less)


def test_the_tree_learns_and_has_makemores_size():
    contexts = torch.randint(27, (500, 8), generator=torch.Generator().manual_seed(0))
    letters = contexts[:, -1]
    model, curve = tree.train(contexts, letters, seed=0, steps=150)
    assert sum(weight.numel() for weight in model.parameters()) == 76_579
    assert tree.score(model, contexts, letters) < 1.5 < curve[0][1]


def test_rows_of_names():
    x, y = transformer.rows(["ab", "c"], 3)
    assert x.tolist() == [[0, 1, 2, 0], [0, 3, 0, 0]]
    assert y.tolist() == [[1, 2, 0, -1], [3, 0, -1, -1]]
    assert sum(weight.numel() for weight in transformer.network(15).parameters()) == 204_544


def test_a_lab_without_its_data_says_where_to_get_it(tmp_path, capsys):
    assert time_machine_lab(["--data", str(tmp_path), "--out", str(tmp_path)]) == 2
    assert "timemachine.txt was not found" in capsys.readouterr().err
