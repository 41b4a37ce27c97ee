r"""Loss functions with one convention.

- **Order**: `loss(prediction, target)`. The output of the model first, the target second.
- **Shapes**: both have the same shape unless the loss says otherwise; nothing is broadcast. Classes are the last axis of a prediction:
  logits (..., c) against labels (...) or probabilities (..., c).
- **Logits**: classifiers take logits, `poisson_nll` the log-rate, `gaussian_nll` the log-variance.
- **mask**: booleans, True where an element is real, over the leading axes of the losses: a mask (b, t) masks whole
  tokens of losses (b, t, d). Masked elements are never read (they may be NaN) and have gradient 0.
- **weight**: non-negative numbers with the shape of a mask.
- **reduction**: "mean" (default) is the weighted mean :math:`\sum w_i l_i / \sum w_i` over unmasked elements, "sum"
  is :math:`\sum w_i l_i`, "none" returns each :math:`w_i l_i`, 0 where masked.
"""

from wonderland.tasks.losses.classes import binary_cross_entropy, cross_entropy, focal
from wonderland.tasks.losses.contrastive import contrastive
from wonderland.tasks.losses.costs import decide, expected_costs
from wonderland.tasks.losses.likelihood import gaussian_nll, negative_binomial_nll, poisson_nll, student_nll
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
    "negative_binomial_nll",
    "poisson_nll",
    "quantile",
    "squared",
    "student_nll",
]
