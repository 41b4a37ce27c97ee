"""The contract of adapters: a trained layer stays as it is, and something small beside it learns."""

from typing import Any

from torch import Tensor, nn

from wonderland.core import Part, WonderlandError


class Adapter(Part, nn.Module):
    """A linear layer whose own weights rest, and what is learned beside it. It begins as the layer alone.

    `merges` says whether what was learned can become part of the layer: `merged()` is then one linear layer with the same
    answers. `weight` and `bias` are what the layer has with the adapter in it, for whoever reads them.

    `models.adapt` puts adapters into a model, `models.merge` merges them.
    """

    merges: bool = True
    layer: nn.Linear

    def __init__(self, layer: Any):
        super().__init__()
        if not isinstance(layer, nn.Linear):
            raise WonderlandError(f"{type(self).__name__} adapts a linear layer, not a {type(layer).__name__}.")
        self.layer = layer.requires_grad_(False)
        self.in_features, self.out_features = layer.in_features, layer.out_features

    @property
    def weight(self) -> Tensor:
        """The weights (out, in) with what was learned in them."""
        return self.layer.weight

    @property
    def bias(self) -> Tensor | None:
        """The bias with what was learned in it."""
        return self.layer.bias

    def merged(self) -> nn.Linear:
        """One linear layer with the same answers."""
        if not self.merges:
            raise WonderlandError(
                f"{type(self).__name__} is not linear, so it cannot become part of a layer: keep the adapter, "
                "or use LoRA, IA3 or BiasTuning."
            )
        weight, bias = self.weight.detach().clone(), self.bias
        plain = nn.Linear(self.in_features, self.out_features, bias=bias is not None, device="meta")
        plain.weight = nn.Parameter(weight)
        if bias is not None:
            plain.bias = nn.Parameter(bias.detach().clone())
        return plain.train(self.training)

    def own(self) -> dict[str, Tensor]:
        """What the adapter itself holds, by name."""
        return {name: value for name, value in self.state_dict().items() if not name.startswith("layer.")}
