"""check: laws on any module."""

import random
import re
import threading
import warnings

import numpy as np
import pytest
import torch
from torch import nn

import wonderland
from tests.laws.toys import Convolution, Peek
from wonderland.core import WonderlandError
from wonderland.laws import Example, causality


def test_a_module_that_promises_nothing_is_held_to_what_any_module_should_do():
    verdicts = wonderland.check(nn.LSTM(4, 4, batch_first=True), torch.randn(2, 5, 4))
    assert [verdict.law for verdict in verdicts] == [
        "determinism", "batch_independence", "padding_invariance", "gradients", "finiteness", "save_load",
        "causality", "streaming", "permutation_equivariance",
    ]  # fmt: skip
    assert verdicts.broken == []
    assert verdicts["causality"].outcome == "holds"
    assert verdicts["permutation_equivariance"].outcome == "broken"
    assert not verdicts["permutation_equivariance"].promised


def test_a_law_that_was_asked_for_counts():
    verdicts = wonderland.check(Peek(2, 5), Example.floats(2, 7, 4), ["causality", "determinism"])
    assert [verdict.law for verdict in verdicts.broken] == ["causality"]
    assert wonderland.check(Peek(2, 5), Example.floats(2, 7, 4), causality).broken == verdicts.broken
    assert wonderland.check(Peek(2, 5), Example.floats(2, 7, 4), "causality").broken == verdicts.broken


def test_a_module_is_held_to_its_promises():
    class Promising(Convolution):
        def laws(self):
            return (wonderland.laws.causality, "locality")

    verdicts = wonderland.check(Promising(4, 3, causal=False), Example.floats(2, 7, 4))
    assert [verdict.law for verdict in verdicts] == ["causality", "locality"]
    assert [verdict.law for verdict in verdicts.broken] == ["causality"]


def test_an_unknown_law_is_answered_with_the_nearest():
    with pytest.raises(WonderlandError) as error:
        wonderland.check(nn.Identity(), torch.ones(2, 3), ["casuality"])
    assert (
        str(error.value) == "There is no law 'casuality'. Did you mean 'causality' or 'locality' or 'strict_causality'?"
    )
    with pytest.raises(WonderlandError, match=r"There is no law 'x'\. Laws are batch_independence, causality, "):
        wonderland.check(nn.Identity(), torch.ones(2, 3), ["x"])


class Does(nn.Module):
    """A linear layer with something done before or after it."""

    def __init__(self, before=lambda x: x, after=lambda y: y):
        super().__init__()
        self.linear, self.before, self.after = nn.Linear(4, 4), before, after

    def forward(self, x):
        return self.after(self.linear(self.before(x)))


def test_a_module_that_writes_into_its_input_is_told_so_and_judged_on_copies():
    x = torch.randn(2, 5, 4)
    kept = x.clone()
    verdicts = wonderland.check(Does(before=lambda x: x.mul_(2)), x)
    assert [verdict.law for verdict in verdicts.broken] == ["determinism"]
    assert verdicts["determinism"].witness == "it writes into its input, so a second call would see other numbers"
    assert verdicts["causality"].outcome == "holds"
    assert torch.equal(x, kept)


def test_an_answer_of_nan_keeps_no_law_that_compares():
    spoilt = Does(after=lambda y: y.index_fill(1, torch.tensor([3]), torch.nan))
    verdicts = wonderland.check(spoilt, torch.randn(2, 5, 4))
    told = "output 3 (row 0) is NaN on the example itself, so that answers cannot be compared"
    assert [verdict.law for verdict in verdicts.broken] == ["batch_independence", "gradients", "finiteness"]
    assert verdicts["batch_independence"].witness == verdicts["causality"].witness == told
    assert verdicts["streaming"].outcome == "not applicable"


def test_an_input_that_is_not_finite_is_named():
    witness = wonderland.check(Does(), torch.full((2, 5, 4), torch.inf), "causality")[0].witness
    assert ", whose input is not finite, so that answers cannot be compared" in witness


def test_a_lazy_module_gets_its_shapes_in_a_copy():
    module = nn.Sequential(nn.LazyLinear(4), nn.Linear(4, 4))
    assert wonderland.check(module, torch.randn(2, 5, 3)).broken == []
    assert nn.parameter.is_lazy(module[0].weight)
    with pytest.raises(
        WonderlandError, match="Sequential gets its shapes at the first call, which failed on this example"
    ):
        wonderland.check(nn.Sequential(nn.LazyLinear(4), nn.Linear(5, 4)), torch.randn(2, 5, 3))


def test_two_axes_are_enough_to_name_a_row():
    witness = wonderland.check(nn.Linear(4, 4), torch.randn(3, 4), "causality")[0].witness
    assert witness.startswith("output ")
    assert "(row " in witness


@pytest.mark.parametrize(
    ("run", "sentence"),
    [
        (
            lambda: wonderland.check(nn.Linear, torch.ones(2, 3)),
            "Laws are checked on a torch module, not on the class Linear: build it first.",
        ),
        (
            lambda: wonderland.check(nn.Linear(3, 3), torch.ones(0, 2, 3)),
            "The input of this example has the shape (0, 2, 3), so it is empty: "
            "give at least one row and one position.",
        ),
    ],
)
def test_what_cannot_be_checked_is_told(run, sentence):
    with pytest.raises(WonderlandError) as error:
        run()
    assert str(error.value) == sentence


def test_no_law_at_all_is_told():
    with pytest.raises(
        WonderlandError, match=r"No law is named: name some of batch_independence, .*, or leave laws out\."
    ):
        wonderland.check(nn.Linear(3, 3), torch.ones(1, 2, 3), [])


def test_what_is_not_a_module_is_refused():
    with pytest.raises(WonderlandError) as error:
        wonderland.check("model", torch.ones(2, 3))
    assert str(error.value) == "Laws are checked on a torch module, not on a str."


def test_the_module_and_all_random_numbers_are_left_as_they_were():
    class Careless(nn.Linear):
        def forward(self, x):
            random.random()
            np.random.rand()  # noqa: NPY002
            torch.rand(1)
            return super().forward(x)

    block = Careless(4, 4).train()
    before = {name: value.clone() for name, value in block.state_dict().items()}
    states = (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())  # noqa: NPY002
    wonderland.check(block, torch.randn(2, 3, 4, generator=torch.Generator()))
    assert block.training
    assert all(torch.equal(value, before[name]) for name, value in block.state_dict().items())
    assert all(value.grad is None for value in block.parameters())
    assert states == (random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist())  # noqa: NPY002


def test_it_works_without_gradients_around_it():
    with torch.no_grad():
        assert wonderland.check(nn.Linear(4, 4), torch.randn(2, 3, 4)).broken == []
    with torch.inference_mode():
        assert wonderland.check(nn.Linear(4, 4), torch.randn(2, 3, 4)).broken == []


def test_a_tensor_given_three_times_changes_everywhere():
    x = torch.randn(2, 5, 4)
    verdicts = wonderland.check(nn.MultiheadAttention(4, 2, batch_first=True), (x, x, x), ["causality", "gradients"])
    assert [verdict.law for verdict in verdicts.broken] == ["causality"]
    apart = wonderland.check(nn.MultiheadAttention(4, 2, batch_first=True), (x, x.clone(), x.clone()), "causality")
    assert apart.broken == []


def test_the_padding_masks_of_torch_count_the_other_way():
    layer, x = nn.TransformerEncoderLayer(4, 2, 6, batch_first=True), torch.randn(3, 5, 4)
    assert wonderland.check(layer, Example((x,), mask="src_key_padding_mask"), "padding_invariance").broken == []


def test_the_row_that_an_embedding_holds_still_is_left_out_of_gradients():
    tokens = torch.tensor([[0, 1, 2, 0], [2, 2, 0, 1]])
    held = wonderland.check(nn.Embedding(3, 4, padding_idx=0), tokens, "gradients")
    assert held[0].outcome == "holds"


def test_the_entry_that_is_named_comes_with_its_own_numbers():
    class Stuck(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(30, 4))

        def forward(self, x):
            weight = torch.cat([self.weight[:3], self.weight[3:4].detach(), self.weight[4:]])
            return x @ weight.mT

    witness = wonderland.check(Stuck(), torch.randn(2, 17, 4), "gradients")[0].witness
    assert witness.startswith("by weight[3, ")
    assert ", backward says 0 and differences say" in witness


class Keeps(nn.Module):
    """Holds on to what it last answered."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)

    def forward(self, x):
        self.last = self.inner(x)
        return self.last


def test_a_module_that_keeps_its_last_answer_can_be_checked():
    module, x = Keeps(), torch.randn(2, 5, 4)
    module(x)
    assert not wonderland.check(module, x, ["causality", "gradients"]).broken


def test_a_module_that_cannot_be_copied_is_told():
    module = nn.Linear(4, 4)
    module.lock = threading.Lock()
    with pytest.raises(
        WonderlandError,
        match="^Laws are checked on a copy, and Linear cannot be copied: copy.deepcopy raised TypeError "
        r"\(cannot pickle '_thread.lock' object\).$",
    ):
        wonderland.check(module, torch.randn(2, 5, 4))


@pytest.mark.parametrize(
    ("laws", "says"), [(3, "laws must be names of laws or functions, not 3."), ([3], "There is no law 3. Laws are ")]
)
def test_laws_that_are_none(laws, says):
    with pytest.raises(WonderlandError, match="^" + re.escape(says)):
        wonderland.check(nn.Linear(4, 4), torch.randn(2, 5, 4), laws)


def test_a_module_that_promises_nothing_usable_is_told():
    module = nn.Linear(4, 4)
    module.laws = lambda: None
    with pytest.raises(WonderlandError, match=r"^laws\(\) of Linear must be names of laws or functions, not None.$"):
        wonderland.check(module, torch.randn(2, 5, 4))


class Remembers(nn.Module):
    """Holds on to what it last answered, in a buffer."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(4, 4)
        self.register_buffer("last", torch.zeros(1))

    def forward(self, x):
        self.last = self.inner(x)
        return self.last


def test_buffers_of_the_last_answer_and_old_weight_norms_can_be_checked():
    x = torch.randn(2, 5, 4)
    module = Remembers()
    module(x)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch has a newer one
        normed = nn.utils.weight_norm(nn.Linear(4, 4))
    for one in (module, normed):
        assert not wonderland.check(one, x, ["causality", "gradients"]).broken
