"""The stack with shared blocks: a deep network with the parameters of a shallow one."""

from typing import Any

from wonderland.core import Spec, WonderlandError, part
from wonderland.nn.blocks.stack import DEEPEST, Stack


@part
class SharedStack(Stack):
    r"""A stack whose layers share their blocks, as in ALBERT.

    .. math:: h_{l+1} = \mathrm{group}_{g(l)}(h_l), \qquad g(l) = \lfloor l \cdot \mathrm{groups} / \mathrm{depth} \rfloor

    There are `groups` groups of `group_depth` blocks each. A layer applies a whole group, and each group is applied by
    consecutive layers, so `depth` layers cost depth * group_depth blocks of computation and groups * group_depth blocks of
    parameters. With groups = depth nothing is shared.

    Shapes: x (b, t, dim) -> (b, t, dim); state: a tuple with one state for each application of a block.
    Paper: Lan et al., 2020 (ALBERT); Dehghani et al., 2019 (Universal Transformer).

    >>> from wonderland.nn.blocks.block import Block
    >>> from wonderland.nn.mixers.shift import Shift
    >>> stack = SharedStack(8, 6, Block.spec(mixer=Shift.spec()), groups=2)
    >>> len(stack.blocks), len(stack.applied)
    (2, 6)
    """

    def __init__(
        self,
        dim: int,
        depth: int,
        block: Any,
        *,
        groups: int = 1,
        group_depth: int = 1,
        norm: Any = True,
        position: Spec | None = None,
    ):
        if not 1 <= groups <= depth or group_depth < 1:
            raise WonderlandError(
                f"A SharedStack of {depth} layers has 1 to {depth} groups of at least 1 block, "
                f"not groups={groups}, group_depth={group_depth}."
            )
        if depth * group_depth > DEEPEST:
            raise WonderlandError(f"A stack applies at most {DEEPEST:,} blocks, not {depth * group_depth:,}.")
        super().__init__(dim, groups * group_depth, block, norm=norm, position=position)
        self.groups, self.group_depth = groups, group_depth
        # Divided twice, as in the published code: its rounding decides which group a few layers of odd numbers have.
        starts = [int(layer / (depth / groups)) * group_depth for layer in range(depth)]
        self.order = tuple(start + index for start in starts for index in range(group_depth))

    @property
    def applied(self) -> list[Any]:
        return [self.blocks[index] for index in self.order]
