"""The sanitizers see every kernel, and find nothing."""

import pytest

from tests.ops import sanitize
from wonderland.ops import kernel_cache


def test_every_kernel_has_a_sweep():
    assert (
        sorted(sanitize.NAMES)
        == sorted(sanitize.SWEEPS)
        == sorted(path.stem for path in kernel_cache.SOURCES.glob("*.cpp"))
    )


@pytest.mark.slow
@pytest.mark.parametrize("kernel", sanitize.NAMES)
def test_the_sanitizers_find_nothing(kernel):
    code = sanitize.run([kernel])
    if code == 77:
        pytest.skip("the compiler has no sanitizers")
    assert code == 0
