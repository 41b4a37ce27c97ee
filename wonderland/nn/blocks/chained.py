"""The stream through kernels of several blocks at once, where a broken token must not reach those before it."""

import math
from functools import reduce

from torch import Tensor

from wonderland.nn.contract.nonfinite import quarantine, release
from wonderland.ops.chain import Link, chain


def chained(x: Tensor, *blocks: list[Link]) -> Tensor:
    """The stream after the links of some blocks; a broken token is kept from those that do not see it."""
    links = [link for block in blocks for link in block]
    if not links:
        return x
    y = chain(x, links)
    # The last position sees all of its row, so a broken token anywhere shows there.
    if not any(link.mixes for link in links) or math.isfinite(y.detach()[:, -1].sum().item()):
        return y
    if len(blocks) > 1:  # it may have broken on the way
        return reduce(chained, blocks, x)
    whole, broken = quarantine(x)
    return y if broken is None else release(chain(whole, links), broken)
