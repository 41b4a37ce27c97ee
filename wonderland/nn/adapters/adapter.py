"""The contract of adapters: a frozen linear layer with a few trained parameters beside it."""

from typing import Any

from torch import Tensor, nn

from wonderland.core import Part, WonderlandError


class Adapter(Part, nn.Module):
    """A linear layer with frozen weights and trained parameters beside it. At first it computes what the layer does.

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
        """The weights (out, in) with the adapter merged in."""
        return self.layer.weight

    @property
    def bias(self) -> Tensor | None:
        """The bias with the adapter merged in."""
        return self.layer.bias

    def merged(self) -> nn.Linear:
        """One linear layer with the same outputs."""
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
        """The parameters of the adapter itself, by name."""
        return {name: value for name, value in self.state_dict().items() if not name.startswith("layer.")}
