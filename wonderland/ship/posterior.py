"""posterior.safetensors: draws of a run's weights from their posterior, for columns of epistemic uncertainty."""

from pathlib import Path

from torch import nn

from wonderland.core import WonderlandError, inside, load_tensors, read_header, save_tensors, sha256
from wonderland.core.limits import check
from wonderland.trust.weight_draws import WeightDraws

POSTERIOR = "posterior.safetensors"
METHODS = ("laplace", "swag")


def save_posterior(folder: Path, method: str, draws: WeightDraws) -> None:
    """Write the draws of a run, with the digest of the model that they belong to."""
    meta = {"method": method, "model": sha256(folder / "model.safetensors")}
    save_tensors(folder / POSTERIOR, dict(draws.tensors), meta)


def is_current(folder: Path, method: str) -> bool:
    """Whether the draws were made for the current model by this method."""
    try:
        meta = load_tensors(folder / POSTERIOR)[1] if (folder / POSTERIOR).exists() else {}
        return meta.get("method") == method and meta.get("model") == sha256(folder / "model.safetensors")
    except WonderlandError:
        return False


def read_posterior(folder: Path, model: nn.Module) -> WeightDraws:
    """The draws of a run, checked."""
    path = inside(folder, POSTERIOR)
    if not path.exists():
        raise WonderlandError(
            f"The run in {folder} has no {POSTERIOR}, from which its uncertainty is computed: fit it again."
        )
    check("posterior_bytes", path.stat().st_size, path)
    read_header(path)
    tensors, meta = load_tensors(path)
    if meta.get("model") != sha256(folder / "model.safetensors"):
        raise WonderlandError(f"{path} was made for another model: fit the run again.")
    draws = WeightDraws(tensors)
    draws.check(model)
    return draws
