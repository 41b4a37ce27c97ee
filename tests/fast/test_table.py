"""The table of fast forms: one entry for an exact type, reached through one hook."""

import pytest
import torch

from wonderland.fast import entry
from wonderland.fast.table import NO_RULE, RULES, Rule, register, rule_of
from wonderland.generation import compiled  # noqa: F401  (registers the decoder)
from wonderland.models import Decoder
from wonderland.nn import GRU, MLP, RWKV, Attention, Block, LayerNorm, Mamba, RMSNorm, Stack
from wonderland.nn.contract import fast_path


@pytest.mark.parametrize("kind", [Attention, Mamba, RWKV, GRU, MLP, Block, Stack, Decoder])
def test_classes_with_a_step(kind):
    assert RULES[kind].step is not None


def test_norms_have_forms_for_both_kinds_of_kernels():
    for kind in (LayerNorm, RMSNorm):
        assert RULES[kind].norm is not None
        assert RULES[kind].norm_form is not None


def test_a_subclass_has_no_rule():
    class Mine(MLP):
        pass

    assert rule_of(MLP(8)).step is not None
    assert rule_of(Mine(8)) is NO_RULE
    assert entry.residual_block(Mine(8), LayerNorm(8), torch.randn(4, 20, 8)) is None
    assert entry.residual_block(MLP(8), LayerNorm(8), torch.randn(4, 20, 8)) is not None


def test_a_class_is_entered_once():
    with pytest.raises(AssertionError, match="MLP has a rule already"):
        register(MLP, Rule())


def test_mixers_hold_nothing_about_speed():
    gone = (
        "plan",
        "plan_own",
        "planned",
        "script",
        "go_on",
        "link",
        "links",
        "adds",
        "branch",
        "branched",
        "speaks",
        "step",
    )
    for kind in RULES:
        assert not [name for name in gone if hasattr(kind, name)], kind


def test_the_hook_answers_none_where_plain_torch_has_to_do_it():
    mixer, x = GRU(8), torch.randn(2, 1, 8)
    with torch.no_grad():
        _, state = mixer.stream(x)
        assert fast_path.step(mixer, x, state, None) is not None
        assert fast_path.step(mixer, x, None, None) is None
        assert fast_path.step(mixer, x, state, torch.ones(2, 1, dtype=torch.bool)) is None
    assert fast_path.step(mixer, x, state, None) is None
