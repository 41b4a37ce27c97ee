"""Training: the loop, learners, checkpoints, early stopping, fine-tuning."""

from wonderland.train.adversarial import Adversarial
from wonderland.train.budget import seconds, steps_within
from wonderland.train.checkpoint import Checkpoints
from wonderland.train.closed_form import ClosedForm
from wonderland.train.finder import FoundRate, find_lr
from wonderland.train.finetune import finetune
from wonderland.train.folds import CrossValidation, cross_validate, k_fold
from wonderland.train.guard import NonFinite
from wonderland.train.learner import GradientDescent, Learner
from wonderland.train.loop import Outcome, run
from wonderland.train.loss_scale import LossScale
from wonderland.train.signals import Stopped
from wonderland.train.state import State
from wonderland.train.stopping import BookRule, Flat, Patience
from wonderland.train.supervised import Supervised, adamw

__all__ = [
    "Adversarial",
    "BookRule",
    "Checkpoints",
    "ClosedForm",
    "CrossValidation",
    "Flat",
    "FoundRate",
    "GradientDescent",
    "Learner",
    "LossScale",
    "NonFinite",
    "Outcome",
    "Patience",
    "State",
    "Stopped",
    "Supervised",
    "adamw",
    "cross_validate",
    "find_lr",
    "finetune",
    "k_fold",
    "run",
    "seconds",
    "steps_within",
]
