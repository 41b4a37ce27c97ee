"""Stateless random numbers: each is a function of (seed, epoch, index), independent of what was drawn before."""

import numpy as np

# The constants of SplitMix64 (Steele, Lea and Flood, 2014).
_INCREMENT = np.uint64(0x9E3779B97F4A7C15)
_MULTIPLIER_1 = np.uint64(0xBF58476D1CE4E5B9)
_MULTIPLIER_2 = np.uint64(0x94D049BB133111EB)


def _splitmix64(state: np.ndarray) -> np.ndarray:
    """One SplitMix64 output for each 64-bit state."""
    with np.errstate(over="ignore"):
        state = state + _INCREMENT
        state = (state ^ (state >> np.uint64(30))) * _MULTIPLIER_1
        state = (state ^ (state >> np.uint64(27))) * _MULTIPLIER_2
        return state ^ (state >> np.uint64(31))


def mix(*numbers: int) -> int:
    """Hash several integers into one 63-bit seed; order matters.

    >>> mix(1, 2) == mix(1, 2), mix(1, 2) == mix(2, 1)
    (True, False)
    """
    state = np.zeros(1, np.uint64)
    for number in numbers:
        state = _splitmix64(state ^ np.uint64(number & 0xFFFFFFFFFFFFFFFF))
    return int(state[0] >> np.uint64(1))


def uniform(seed: int, epoch: int, indices: np.ndarray, draws: int) -> np.ndarray:
    """Numbers in [0, 1), `draws` for each example, that depend on (seed, epoch, index) alone.

    Shapes: indices (n,) -> (n, draws).

    >>> together = uniform(0, 3, np.array([5, 9]), 4)
    >>> alone = uniform(0, 3, np.array([9]), 4)
    >>> bool((together[1] == alone[0]).all())
    True
    """
    rows = _splitmix64(np.asarray(indices).astype(np.uint64) ^ np.uint64(mix(seed, epoch)))
    columns = _splitmix64(np.arange(1, draws + 1, dtype=np.uint64))
    return (_splitmix64(rows[:, None] ^ columns[None, :]) >> np.uint64(11)) * 2.0**-53


def permutation(seed: int, epoch: int, size: int) -> np.ndarray:
    """The order of an epoch: the same for the same (seed, epoch, size), on any machine.

    >>> sorted(permutation(0, 1, 5).tolist())
    [0, 1, 2, 3, 4]
    """
    return np.random.Generator(np.random.Philox(mix(seed, epoch, size))).permutation(size)
