import json
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from tests.train import toys
from wonderland.core import WonderlandError
from wonderland.train import State, Stopped, run


def seeded():
    torch.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002
    random.seed(0)


def same(one: State, two: State) -> bool:
    pairs = zip(one.model.state_dict().values(), two.model.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


class Cut(Exception):
    pass


def cut_at(step, number):
    """The step, that dies without a word at its `number`th call in this process."""
    calls = 0

    def dying(state, batch):
        nonlocal calls
        calls += 1
        if calls == number:
            raise Cut
        return step(state, batch)

    return dying


def straight(tmp_path, **options):
    seeded()
    return run(
        toys.step,
        toys.state(),
        toys.batches(),
        steps=20,
        folder=tmp_path / "straight",
        evaluate=toys.evaluate,
        **options,
    )


@pytest.mark.parametrize("number", range(1, 20))
def test_cut_at_any_step_and_continued_gives_the_same_bits(tmp_path, number):
    whole = straight(tmp_path)
    folder = tmp_path / "cut"
    seeded()
    with pytest.raises(Cut):
        run(
            cut_at(toys.step, number), toys.state(), toys.batches(), steps=20, folder=folder, evaluate=toys.evaluate,
            checkpoint_seconds=0.0 if number % 2 else 1e9,
        )  # fmt: skip
    torch.manual_seed(99)  # whatever happened since must not matter
    again = run(toys.step, toys.state(), toys.batches(), steps=20, folder=folder, evaluate=toys.evaluate)
    assert same(whole.state, again.state)
    assert whole.state.drawn == again.state.drawn
    assert whole.best_step == again.best_step
    assert (folder / "metrics.jsonl").read_bytes() == (tmp_path / "straight" / "metrics.jsonl").read_bytes()


def test_a_finished_run_is_not_trained_again(tmp_path):
    whole = straight(tmp_path)
    calls = []
    again = run(
        lambda state, batch: calls.append(1) or {}, toys.state(), toys.batches(), steps=20, folder=tmp_path / "straight"
    )
    assert not calls
    assert same(whole.state, again.state)
    assert again.rows == whole.rows


def test_metrics_have_no_timestamps_and_times_are_in_their_own_file(tmp_path):
    straight(tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "straight" / "metrics.jsonl").read_text().splitlines()]
    assert rows[0].keys() == {"step", "epoch", "loss", "drawn", "validation/loss"}
    assert [row["step"] for row in rows] == [7, 14, 20]
    times = [json.loads(line) for line in (tmp_path / "straight" / "times.jsonl").read_text().splitlines()]
    assert [row["step"] for row in times] == [7, 14, 20]


def test_the_best_weights_are_restored_and_patience_stops(tmp_path):
    values = iter([3.0, 1.0, 2.0, 2.0, 0.5])
    state = State(model=nn.Linear(1, 1))

    def count(state, batch):
        with torch.no_grad():
            state.model.weight.fill_(float(state.step + 1))
        return {"loss": 0.0}

    outcome = run(
        count,
        state,
        [None],
        steps=5,
        evaluate=lambda state: {"score": next(values)},
        evaluate_every=1,
        watch="score",
        patience=2,
    )
    assert outcome.stopped_early
    assert (outcome.best_step, outcome.best_value, state.step) == (2, 1.0, 4)
    assert state.model.weight.item() == 2.0


def test_larger_can_be_better_and_none_keeps_the_last():
    scores = {"validation/score": 0.0}

    def climb(state, batch):
        with torch.no_grad():
            state.model.weight.fill_(float(state.step + 1))
        scores["validation/score"] = [1.0, 5.0, 2.0][state.step]
        return {"loss": 1.0}

    options = {"steps": 3, "evaluate": lambda state: dict(scores), "evaluate_every": 1}
    state = State(model=nn.Linear(1, 1))
    run(climb, state, [None], watch="validation/score", larger_is_better=True, **options)
    assert state.model.weight.item() == 2.0
    state = State(model=nn.Linear(1, 1))
    run(climb, state, [None], watch=None, **options)
    assert state.model.weight.item() == 3.0


def test_errors_to_the_word(tmp_path):
    with pytest.raises(WonderlandError, match=r"^Training needs at least one step, not 0\.$"):
        run(toys.step, toys.state(), toys.batches(), steps=0)
    with pytest.raises(WonderlandError) as caught:
        run(toys.step, toys.state(), iter([1]), steps=1)
    assert str(caught.value) == (
        "Batches must be a function of the step number, a list, or wonderland.data.Batches, so that a stopped run can be "
        "resumed exactly; a list_iterator cannot be started in the middle."
    )
    with pytest.raises(WonderlandError) as caught:
        run(toys.step, toys.state(), toys.batches(), steps=1, evaluate=lambda state: {"a": 1.0})
    assert str(caught.value) == (
        "There is no 'validation/loss' among step, loss, drawn, epoch, a: choose what to watch from these."
    )
    with pytest.raises(WonderlandError) as caught:
        State(step=1)
    assert str(caught.value) == "A part of the state cannot be called 'step': choose another name."
    run(toys.step, toys.state(), toys.batches(), steps=1, folder=tmp_path)
    other = State(model=toys.model())
    with pytest.raises(WonderlandError) as caught:
        run(toys.step, other, toys.batches(), steps=2, folder=tmp_path)
    assert str(caught.value) == (
        "The checkpoint and the state differ in drawn, optimizer: give the state the parts it had when it was saved."
    )


def test_changed_metrics_are_refused(tmp_path):
    straight(tmp_path)
    path = tmp_path / "straight" / "metrics.jsonl"
    path.write_text("")
    with pytest.raises(WonderlandError) as caught:
        run(toys.step, toys.state(), toys.batches(), steps=20, folder=tmp_path / "straight")
    assert (
        str(caught.value)
        == f"{path} is shorter than the checkpoint says: it was changed. Start again with --overwrite."
    )


def test_a_stop_signal_saves_a_checkpoint(tmp_path):
    import os
    import signal

    def asked(state, batch):
        if state.step == 4:
            os.kill(os.getpid(), signal.SIGTERM)
        return toys.step(state, batch)

    whole = straight(tmp_path)
    seeded()
    with pytest.raises(Stopped) as caught:
        run(asked, toys.state(), toys.batches(), steps=20, folder=tmp_path / "s", evaluate=toys.evaluate)
    assert str(caught.value) == f"Stopped after step 5 of 20; everything is saved in {tmp_path / 's'}."
    assert caught.value.signum == signal.SIGTERM
    again = run(toys.step, toys.state(), toys.batches(), steps=20, folder=tmp_path / "s", evaluate=toys.evaluate)
    assert same(whole.state, again.state)
    with pytest.raises(Stopped, match="nothing was saved, since there is no folder"):
        run(asked, toys.state(), toys.batches(), steps=20)


def test_worker_processes_change_nothing(tmp_path):
    whole = straight(tmp_path)
    folder = tmp_path / "workers"
    seeded()
    with pytest.raises(Cut):
        run(
            cut_at(toys.step, 12), toys.state(), toys.batches(workers=2), steps=20, folder=folder,
            evaluate=toys.evaluate, checkpoint_seconds=0.0,
        )  # fmt: skip
    again = run(toys.step, toys.state(), toys.batches(workers=2), steps=20, folder=folder, evaluate=toys.evaluate)
    assert same(whole.state, again.state)


def test_tensorboard_reads_the_same_numbers(tmp_path):
    straight(tmp_path, tensorboard=True)
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    board = EventAccumulator(str(tmp_path / "straight" / "tensorboard"))
    board.Reload()
    assert {"loss", "validation/loss"} <= set(board.Tags()["scalars"])
    assert [event.step for event in board.Scalars("loss")] == [7, 14, 20]


def test_no_folder_no_tensorboard():
    with pytest.raises(WonderlandError, match=r"^TensorBoard needs a folder to write to: give the run a folder\.$"):
        run(toys.step, toys.state(), toys.batches(), steps=1, tensorboard=True)


def test_the_loop_stays_readable():
    from wonderland.train import loop

    assert len(Path(loop.__file__).read_text().splitlines()) < 300


def test_a_finished_training_goes_on_when_more_steps_are_asked_for(tmp_path):
    seeded()
    run(toys.step, toys.state(), toys.batches(), steps=20, folder=tmp_path)
    more = run(toys.step, toys.state(), toys.batches(), steps=30, folder=tmp_path)
    assert more.state.step == 30


def test_a_step_must_return_numbers_by_name():
    for returned, kind in ((None, "NoneType"), (0.5, "float"), ({"loss": "x"}, "dict")):
        with pytest.raises(WonderlandError) as caught:
            run(lambda state, batch, value=returned: value, toys.state(), toys.batches(), steps=1)
        assert str(caught.value) == f"A step must return numbers by name, such as {{'loss': 0.3}}, not {kind}."


def test_a_checkpoint_of_another_training_is_refused(tmp_path):
    run(toys.step, toys.state(), toys.batches(), steps=1, folder=tmp_path, identity="a")
    with pytest.raises(WonderlandError) as caught:
        run(toys.step, toys.state(), toys.batches(), steps=2, folder=tmp_path, identity="b")
    assert str(caught.value) == (
        f"The options or the data of the training in {tmp_path / 'checkpoint'} were changed since it began. Start again with --overwrite."
    )
    other = toys.state()
    other.model = nn.Linear(4, 2)
    with pytest.raises(WonderlandError) as caught:
        run(toys.step, other, toys.batches(), steps=2, folder=tmp_path, identity="a")
    assert str(caught.value) == (
        f"The checkpoint in {tmp_path / 'checkpoint'} is not from this training. Start again with --overwrite."
    )
