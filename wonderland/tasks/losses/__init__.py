r"""Losses: how wrong a prediction is, as one number to descend. One convention holds for all of them.

- **Order**: `loss(prediction, target)`. What the model gave comes first, the truth second.
- **Shapes**: both have one shape, or the loss says so; nothing is broadcast. Classes are the last axis of a prediction:
  logits (..., c) against labels (...) or probabilities (..., c).
- **Logits**: classifiers give logits, a Poisson model the logarithm of its rate, a Gaussian one that of its variance.
- **mask**: booleans, True where an element is real, over the leading axes of the losses: a mask (b, t) hides whole
  tokens of losses (b, t, d). What is hidden is never read (it may hold NaN) and gets the gradient 0.
- **weight**: numbers of at least 0, laid out like a mask.
- **reduction**: "mean" (default) is the weighted mean :math:`\sum w_i l_i / \sum w_i` over what the mask shows, "sum"
  is :math:`\sum w_i l_i`, "none" gives each :math:`w_i l_i`, 0 where hidden.
"""

from wonderland.tasks.losses.classes import binary_cross_entropy, cross_entropy, focal
from wonderland.tasks.losses.contrastive import contrastive
from wonderland.tasks.losses.costs import decide, expected_costs
from wonderland.tasks.losses.likelihood import gaussian_nll, poisson_nll
from wonderland.tasks.losses.margin import hinge
from wonderland.tasks.losses.regression import absolute, huber, quantile, squared

__all__ = [
    "absolute",
    "binary_cross_entropy",
    "contrastive",
    "cross_entropy",
    "decide",
    "expected_costs",
    "focal",
    "gaussian_nll",
    "hinge",
    "huber",
    "poisson_nll",
    "quantile",
    "squared",
]
