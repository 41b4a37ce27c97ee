"""Returns of n steps against the sum that defines them."""

import numpy as np
import pytest

from wonderland.rl.n_step import n_step_returns


@pytest.mark.parametrize("n", [1, 3, 20])
def test_returns_against_the_sum_they_are(n):
    draw = np.random.default_rng(0)
    rewards, following = draw.normal(size=(12, 3)), draw.normal(size=(12, 3, 2))
    ended, cut = draw.random((12, 3)) < 0.15, draw.random((12, 3)) < 0.15
    returns = n_step_returns(rewards, following, ended, cut & ~ended, 0.9, n)
    for env in range(3):
        for t in range(12):
            total = 0.0
            for k in range(n):
                last = t + k
                total += 0.9**k * rewards[last, env]
                if ended[last, env] or cut[last, env] or last == 11:
                    break
            assert returns.rewards[t, env] == pytest.approx(total)
            assert returns.following[t, env].tolist() == following[last, env].tolist()
            factor = 0.0 if ended[last, env] else 0.9 ** (last - t + 1)
            assert returns.factor[t, env] == pytest.approx(factor)
