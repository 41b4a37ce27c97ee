import numpy as np
import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.data import Augment, Batches


def test_an_epoch_sees_each_row_at_most_once_and_epochs_differ():
    batches = Batches(torch.arange(50.0)[:, None], torch.arange(50), size=8, seed=1)
    assert batches.per_epoch == 6
    first = np.concatenate([batches.indices(0, i) for i in range(6)])
    assert len(set(first.tolist())) == 48
    assert first.tolist() != np.concatenate([batches.indices(1, i) for i in range(6)]).tolist()


def test_any_batch_can_be_asked_for_in_any_order():
    batches = Batches(torch.arange(50.0)[:, None], torch.arange(50), size=8, seed=1)
    straight = [batches.batch(e, i) for e in range(3) for i in range(6)]
    again = Batches(torch.arange(50.0)[:, None], torch.arange(50), size=8, seed=1)
    for number in (17, 3, 11, 0):
        x, y = again.batch(*divmod(number, 6))
        assert torch.equal(x, straight[number]["x"])
        assert torch.equal(y, straight[number]["y"])


@pytest.mark.parametrize("workers", [0, 2])
def test_a_stream_can_begin_anywhere(workers):
    batches = Batches(torch.arange(50.0)[:, None], torch.arange(50), size=8, seed=1, workers=workers)
    state = torch.get_rng_state()
    found = list(batches.stream(5, 15))
    assert torch.equal(state, torch.get_rng_state())
    assert len(found) == 10
    for number, (x, _) in enumerate(found, 5):
        assert torch.equal(x, batches.batch(*divmod(number, 6))["x"])
    assert list(batches.stream(5, 5)) == []


def test_ensemble_members_have_their_own_rows_and_orders():
    rows = [np.arange(0, 20), np.arange(10, 32)]
    batches = Batches(torch.arange(40.0)[:, None], torch.arange(40), size=6, seed=0, rows=rows)
    x, y = batches.batch(0, 0)
    assert x.shape == (2, 6, 1)
    assert torch.equal(x[..., 0].long(), y)
    assert set(y[0].tolist()) <= set(range(20))
    assert set(y[1].tolist()) <= set(range(10, 32))


def test_the_randomness_of_an_example_does_not_depend_on_its_batch():
    pictures = torch.randint(0, 255, (12, 1, 8, 8), dtype=torch.uint8)
    looks = {}
    for size in (3, 4):
        batches = Batches(pictures, torch.arange(12), size=size, seed=5, augment=Augment())
        looks[size] = {}
        for position in range(batches.per_epoch):
            x, y = batches.batch(2, position)
            looks[size] |= {int(label): image for label, image in zip(y, x, strict=True)}
    for label, image in looks[3].items():
        assert torch.equal(image, looks[4][label])


def test_rows_from_a_function():
    source = torch.arange(10.0)[:, None]
    batches = Batches(lambda rows: source[torch.as_tensor(rows)], torch.arange(10), size=5)
    x, y = batches.batch(0, 1)
    assert torch.equal(x[:, 0].long(), y)


def test_an_error_in_the_background_thread_is_raised():
    def broken(rows):
        raise WonderlandError("cannot read")

    with pytest.raises(WonderlandError, match="cannot read"):
        next(Batches(broken, torch.arange(4), size=2).stream(0, 3))


def test_without_rows_it_is_an_error():
    with pytest.raises(WonderlandError) as caught:
        Batches(torch.zeros(0, 1), torch.zeros(0), size=4)
    assert str(caught.value) == "Batches of 4 from 0 rows cannot be made: there must be at least one of each."
