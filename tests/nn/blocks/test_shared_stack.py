"""Stacks whose layers share their blocks."""

import pytest
import torch

from wonderland.core import WonderlandError
from wonderland.nn.blocks.block import Block
from wonderland.nn.blocks.shared_stack import SharedStack
from wonderland.nn.channel.mlp import MLP
from wonderland.nn.mixers.shift import Shift

BLOCK = Block.spec(mixer=Shift.spec(), channel=MLP.spec(hidden=4))


def test_layers_apply_the_blocks_of_their_group_in_turn():
    stack, x = SharedStack(8, 5, BLOCK, groups=2, group_depth=2), torch.randn(2, 5, 8)
    assert stack.order == (0, 1, 0, 1, 0, 1, 2, 3, 2, 3)
    h = x
    for index in stack.order:
        h = stack.blocks[index](h)
    torch.testing.assert_close(stack(x), stack.norm(h))
    assert len(list(stack.parameters())) == len(list(stack.blocks.parameters())) + 2


def test_each_application_has_a_state_of_its_own():
    stack, x = SharedStack(8, 3, BLOCK), torch.randn(2, 6, 8)
    head, state = stack.stream(x[:, :4])
    tail, _ = stack.stream(x[:, 4:], state)
    assert len(state) == 3
    torch.testing.assert_close(torch.cat([head, tail], 1), stack(x))
    assert stack.receptive_field == (3, 0)


def test_groups_that_cannot_be_are_refused():
    with pytest.raises(WonderlandError) as error:
        SharedStack(8, 3, BLOCK, groups=4)
    assert str(error.value) == (
        "A SharedStack of 3 layers has 1 to 3 groups of at least 1 block, not groups=4, group_depth=1."
    )
