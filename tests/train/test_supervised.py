import pytest
import torch
from torch import nn

from tests.train import toys
from wonderland.core import WonderlandError
from wonderland.tasks import Classification
from wonderland.train import State, Supervised, adamw, find_lr, seconds, steps_within


def fresh(seed=0):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 2))
    return State(model=model, optimizer=adamw(model, lr=0.01))


def test_accumulation_gives_the_gradient_of_the_whole_batch():
    task, batch = Classification(["a", "b"]), toys.batches(size=10).batch(0, 0)
    states = []
    for pieces in (1, 3, 10, 16):
        state = fresh()
        for _ in range(3):
            Supervised(task.loss, 10, 0.01, accumulate=pieces)(state, batch)
        states.append(nn.utils.parameters_to_vector(state.model.parameters()))
    for other in states[1:]:
        torch.testing.assert_close(states[0], other, rtol=1e-4, atol=1e-6)


def test_clipping_bounds_the_gradient():
    task, batch = Classification(["a", "b"]), toys.batches().batch(0, 0)
    state = fresh()
    scalars = Supervised(task.loss, 10, 0.01, clip=1e-3)(state, batch)
    assert scalars["gradient_norm"] > 1e-3
    total = torch.stack([p.grad.norm() for p in state.model.parameters()]).norm()
    assert total <= 1.001e-3


def test_bfloat16_trains():
    task, batch = Classification(["a", "b"]), toys.batches().batch(0, 0)
    state = fresh()
    step = Supervised(task.loss, 30, 0.02, precision="bfloat16")
    first = step(state, batch)["loss"]
    for state.step in range(1, 30):
        last = step(state, batch)["loss"]
    assert last < first / 2
    assert all(p.dtype == torch.float32 for p in state.model.parameters())
    with pytest.raises(WonderlandError, match=r"^Precision is 'float32' or 'bfloat16', not 'float16'\.$"):
        Supervised(task.loss, 30, 0.02, precision="float16")


def test_biases_and_norms_are_spared_from_decay():
    state = fresh()
    decayed, spared = state.optimizer.param_groups
    assert [p.dim() for p in decayed["params"]] == [2, 2]
    assert len(spared["params"]) == 4
    assert spared["weight_decay"] == 0


def test_the_finder_finds_a_rate_that_trains_and_leaves_no_trace():
    task, batches, state = Classification(["a", "b"]), toys.batches(), fresh()
    before = {name: value.clone() for name, value in state.model.state_dict().items()}
    rng = torch.get_rng_state()
    found = find_lr(Supervised(task.loss, 80, 0.01), state, batches)
    assert 1e-4 < found.lr < 1
    assert len(found.rates) == len(found.losses) >= 10
    assert all(torch.equal(before[name], value) for name, value in state.model.state_dict().items())
    assert torch.equal(rng, torch.get_rng_state())
    assert state.step == 0


def test_a_loss_that_is_never_finite_is_an_error():
    task = Classification(["a", "b"])
    with pytest.raises(WonderlandError) as caught:
        find_lr(
            Supervised(lambda model, batch: task.loss(model, batch)[0] * float("nan"), 80, 0.01),
            fresh(),
            toys.batches(),
        )
    assert str(caught.value) == (
        "The loss diverged at once, so no learning rate could be found: look at the data and the model first."
    )


def test_a_budget_becomes_steps_and_leaves_no_trace():
    task, state = Classification(["a", "b"]), fresh()
    rng = torch.get_rng_state()
    few = steps_within(0.5, Supervised(task.loss, 80, 0.01), state, toys.batches())
    many = steps_within(50.0, Supervised(task.loss, 80, 0.01), state, toys.batches())
    assert 1 <= few < many
    assert torch.equal(rng, torch.get_rng_state())
    assert state.step == 0


@pytest.mark.parametrize("text", ["", "abc", "5 parsecs", "-3s", "0s", "1e99h", "nan"])
def test_wrong_durations_are_refused(text):
    with pytest.raises(WonderlandError):
        seconds(text)
