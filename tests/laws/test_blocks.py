"""Every block keeps every law that it claims, and claims every law that it keeps."""

import pytest
import torch

from tests.laws.battery import LONG, SHORT, Case, cases, claims, first_of_their_class, judged, unclaimed, unproven
from wonderland.laws import LAWS
from wonderland.laws.subject import Subject

CASES = cases()
CLAIMS = [(case, law) for case in CASES for law in claims(case) if law != "compiles"]
FIRST = first_of_their_class(CASES)
COMPILED = [case for case in FIRST if "compiles" in claims(case)]
ALSO_COMPILED = [case for case in CASES if case not in COMPILED and "compiles" in claims(case)]
VARIANTS = [case for case in CASES if case not in FIRST]
# Laws that the length does not change much.
FEWER = {"determinism": (7,), "save_load": (7,)}


def named(value) -> str:
    return value.name if isinstance(value, Case) else value


def assert_kept(verdicts) -> None:
    broken = [str(verdict) for verdict in verdicts if not verdict]
    assert not broken, "\n".join(broken)


@pytest.mark.parametrize("case", CASES, ids=named)
def test_a_block_keeps_its_claims(case):
    """All laws in one test: what is broken is listed by law, length and witness."""
    block = case.build()
    promises = [law.__name__ for law in block.laws()]
    assert set(promises) <= set(LAWS)
    assert len(promises) == len(set(promises)), "a law is claimed twice"
    assert Subject("", block, case.tried_on(block, 7), torch.float64).computes_in == torch.float64
    verdicts = []
    for law in promises:
        if law == "compiles":
            continue  # has a test of its own
        # Random directions find what every entry would, at a tenth of the cost; the slow suite tries every entry.
        options = {"full": False} if law == "gradients" else {}
        # Variants of a block are tried on one token in the slow suite.
        lengths = FEWER.get(law, SHORT) if case in FIRST else (7,)
        verdicts += judged(case, law, lengths, block=block, **options)
    assert_kept(verdicts)
    assert unproven(case, verdicts, block) == [], "claimed, and not applicable at any length"


@pytest.mark.slow
@pytest.mark.parametrize(("case", "law"), CLAIMS, ids=named)
def test_a_claim_is_kept_at_length(case, law):
    assert_kept(judged(case, law, LONG))
    assert_kept(judged(case, law, (1, 2)))
    if law == "gradients":
        assert_kept(judged(case, law, (2, 7)))


@pytest.mark.parametrize("case", COMPILED, ids=named)
def test_a_block_compiles(case):
    assert_kept(judged(case, "compiles", (7,)))


@pytest.mark.slow
@pytest.mark.parametrize("case", COMPILED, ids=named)
def test_a_block_compiles_at_length(case):
    # Some kernels take many tokens only, and have to stand back for compilers there.
    assert_kept(judged(case, "compiles", (64,)))


@pytest.mark.slow
@pytest.mark.parametrize("case", ALSO_COMPILED, ids=named)
def test_every_variant_compiles(case):
    assert_kept(judged(case, "compiles", (7,)))


@pytest.mark.slow
@pytest.mark.parametrize("case", COMPILED, ids=named)
def test_a_block_compiles_to_machine_code(case):
    assert_kept(judged(case, "compiles", (7,), backend="inductor"))


@pytest.mark.parametrize("case", FIRST, ids=named)
def test_no_law_is_kept_without_a_claim(case):
    assert unclaimed(case) == []


@pytest.mark.slow
@pytest.mark.parametrize("case", VARIANTS, ids=named)
def test_no_law_is_kept_by_a_variant_without_a_claim(case):
    assert unclaimed(case) == []
