"""State spaces, with the options that change what they do."""

from wonderland.nn.mixers.dss import DSS
from wonderland.nn.mixers.lru import LRU
from wonderland.nn.mixers.mamba import Mamba
from wonderland.nn.mixers.mamba2 import Mamba2
from wonderland.nn.mixers.s4d import S4D
from wonderland.nn.mixers.s5 import S5

CASES = {
    "Mamba": lambda: Mamba(8, state_size=3),
    "Mamba-hold": lambda: Mamba(8, state_size=2, expand=1, rule="hold"),
    "Mamba-bilinear": lambda: Mamba(8, state_size=2, expand=1, width=2, rule="bilinear"),
    "Mamba-width-1": lambda: Mamba(8, state_size=2, expand=1, width=1, bias=True, conv_bias=False),
    "DSS": lambda: DSS(8, state_size=3, length=20),
    "DSS-exp": lambda: DSS(8, state_size=2, start="lin", length=None),
    "Mamba2": lambda: Mamba2(8, state_size=3, heads=4, groups=2, chunk=3),
    "Mamba2-limits": lambda: Mamba2(8, state_size=2, expand=1, width=1, bias=True, conv_bias=False, limit=[0.3, 0.6]),
    "S4D": lambda: S4D(8, state_size=3),
    "S4D-bilinear": lambda: S4D(8, state_size=2, start="lin", rule="bilinear"),
    "S4D-euler": lambda: S4D(8, state_size=2, start="inv", rule="euler"),
    "LRU": lambda: LRU(8, state_size=5),
    "S5": lambda: S5(8, state_size=3),
    "S5-bilinear": lambda: S5(8, state_size=2, start="lin", rule="bilinear"),
}
