"""Answers of an exported policy: the action for each observation, and the probability of each where actions are choices."""

from torch import Tensor, nn


class ActionAnswers(nn.Module):
    """Outputs of a policy as what `Control.predictions` says of a table of observations."""

    classes = None

    def __init__(self, actions: int, continuous: bool):
        super().__init__()
        self.actions, self.continuous = actions, continuous
        self.names = ("prediction",) if continuous else ("prediction", "probabilities")

    def forward(self, outputs: Tensor) -> tuple[Tensor, ...]:
        outputs = outputs[:, : self.actions]
        return (outputs.clamp(-1, 1),) if self.continuous else (outputs.argmax(-1), outputs.softmax(-1))
