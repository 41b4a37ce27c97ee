"""Small tables for the tests, and the two questions asked of them."""

import re

import numpy as np
import pytest

from wonderland.core import WonderlandError

R = np.random.default_rng(0)
N = 60
CLASSES = np.array(["no", "yes"])[np.arange(N) % 2]


def table(**columns):
    """Two ordinary columns, and those given."""
    base = {"a": R.normal(size=N), "b": R.choice(["x", "y", "z"], N)}
    return {**base, **columns}


def refused(text):
    """The error with exactly this text."""
    return pytest.raises(WonderlandError, match="^" + re.escape(text) + "$")


def texts(dataset, kind):
    """What the findings of one kind say."""
    return [finding.text for finding in dataset.findings if finding.kind == kind]
