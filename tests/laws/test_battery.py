"""The battery itself: it finds broken claims, missing claims, and blocks that cannot be built."""

from dataclasses import replace
from functools import partial

import torch
from torch import nn

from tests.laws.battery import Case, claims, collect, first_of_their_class, judged, unclaimed, unproven
from tests.laws.toys import Running
from wonderland import laws


class Claiming(Running):
    """A running sum that claims what it is told to."""

    def __init__(self, claimed, fault=""):
        super().__init__(fault=fault)
        self.claimed = claimed

    def laws(self):
        return self.claimed


ALL = (
    laws.causality,
    laws.strict_causality,
    laws.streaming,
    laws.batch_independence,
    laws.padding_invariance,
    laws.shift_equivariance,
)


def test_claims_that_are_kept_are_all_found():
    case = Case("running", partial(Claiming, ALL))
    assert unclaimed(case) == []
    for law in ALL:
        assert all(judged(case, law.__name__, (1, 2, 7)))


def test_a_missing_claim_is_found():
    assert unclaimed(Case("running", partial(Claiming, ALL[2:]))) == ["causality", "strict_causality"]


def test_a_broken_claim_is_found_with_its_length():
    verdicts = judged(Case("x", partial(Claiming, ALL, "forgets at the second piece")), "streaming", (1, 2))
    assert not any(verdicts)
    assert verdicts[1].witness.endswith("(length 2)")


def test_a_claim_that_says_nothing_is_found():
    case = Case("running", partial(Claiming, (laws.causality, laws.permutation_invariance)))
    silent = replace(laws.causality(case.build(), case.tried_on(case.build(), 7)), outcome="not applicable")
    assert unproven(case, [silent]) == []  # it holds at another length
    symmetry = judged(case, "permutation_invariance", (1,))
    assert unproven(case, symmetry) == ["permutation_invariance"]


def test_a_block_is_the_same_each_time_and_hides_nothing_behind_zeros():
    class Zero(nn.Linear):
        def reset_parameters(self):
            nn.init.zeros_(self.weight)
            nn.init.zeros_(self.bias)

    case = Case("zero", partial(Zero, 3, 3))
    assert torch.equal(case.build().weight, case.build().weight)
    assert bool((case.build().weight != 0).all())
    assert bool((Case("zero", partial(Zero, 3, 3), as_built=True).build().weight == 0).all())


def test_a_file_that_cannot_be_imported_fails_alone(tmp_path):
    (tmp_path / "no_such_topic.py").write_text("")
    (case,) = collect(tmp_path, "tests.laws.cases")
    assert case.name == "no_such_topic"
    assert claims(case) == ()


def test_one_case_stands_for_its_class():
    found = (Case("a", partial(Claiming, ALL)), Case("b", partial(Claiming, ALL)))
    assert first_of_their_class(found) == [found[0]]
