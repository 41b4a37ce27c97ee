"""Model, optimizer and schedule that the user names for a fit: parsed from text, and completed from the data."""

import inspect
from dataclasses import replace
from typing import Any

import torch
from torch import nn

import wonderland.models
import wonderland.optim  # noqa: F401 - these fill the closed set that a name is looked up in
from wonderland.core import Spec, WonderlandError, parse_spec
from wonderland.core.memory import available_bytes
from wonderland.core.recipe import Recipe
from wonderland.kinds import KINDS
from wonderland.road.training import Training

SHORT = {"gp": "GaussianProcess", "glm": "GLM"}  # short names that --model takes


def parse_model(text: str) -> Spec:
    """The spec of a model from text, before its arguments are completed."""
    try:
        spec = parse_spec(SHORT.get(text.strip().lower(), text), folders=("models", "kinds"))
    except WonderlandError as error:
        raise WonderlandError(f"{error} See: wonderland models") from None
    part = spec.part
    if not isinstance(part, type) or not issubclass(part, nn.Module):
        raise WonderlandError(f"{spec.name} is not a model.")
    return spec


def implied_task(model: Any) -> str | None:
    """The task that follows from a model: families of counts and amounts predict numbers, however few values there are."""
    spec = parse_model(model) if isinstance(model, str) else model
    families = getattr(spec.part, "number_families", ()) if isinstance(spec, Spec) else ()
    return "regression" if families and spec.arguments.get("family") in families else None


def is_closed_form(model: Spec | str | None) -> bool:
    """Whether a model is fitted in one step from all rows (`fit_rows`), without gradients."""
    return isinstance(model, Spec) and bool(getattr(model.part, "closed_form", False))


def closed_form_recipe(recipe: Recipe, training: Training, rows: int) -> Recipe:
    """The recipe of a model that is fitted in one step; options of gradient descent are refused."""
    assert isinstance(recipe.model, Spec)
    names = ("optimizer", "schedule", "epochs", "steps", "budget", "lr", "weight_decay", "batch_size", "clip", "accumulate",
             "precision", "patience")  # fmt: skip
    for name in names:
        if getattr(training, name) is not None:
            raise WonderlandError(f"{recipe.model.name} is fitted in one step: leave {name} out.")
    learner = Spec("train.ClosedForm", {})
    return replace(recipe, learner=learner, steps=1, batch_size=rows, evaluate_every=1, patience=None, augment=None)


def fill_arguments(asked: Spec, default: Spec, encoder: Any, task: Any, name: str, rows: int = 1) -> Spec:
    """The spec with the arguments that follow from the data; for the default model also those of the recipe."""
    known = task.model_arguments() | encoder.arguments()
    if is_closed_form(asked):
        known |= {"rows": rows}
    for argument, value in asked.arguments.items():
        if argument in known and value != known[argument]:
            raise WonderlandError(
                f"{asked.name} is given {argument}={value!r}, and {name} has {known[argument]!r}: leave {argument} out."
            )
    if asked.name == default.name:
        return Spec(asked.name, {**default.arguments, **asked.arguments})
    taken = inspect.signature(asked.part).parameters
    arguments = {key: value for key, value in known.items() if key in taken} | dict(asked.arguments)
    missing = [
        key
        for key, parameter in taken.items()
        if parameter.default is inspect.Parameter.empty
        and parameter.kind not in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
        and key not in arguments
    ]
    others = [kind.name for kind in KINDS.values() if asked.name in kind.models]
    if missing and others:
        raise WonderlandError(
            f"{asked.name} is a model for {' and '.join(others)}, and {name} is not. See: wonderland models"
        )
    if missing:
        raise WonderlandError(f"{asked.name} needs {missing[0]}, which {name} does not decide: give it in the call.")
    return Spec(asked.name, arguments)


def check_memory(model: Spec) -> None:
    """Refuse a model that would not fit into the free memory, before it is built."""
    try:
        with torch.device("meta"):
            built = model.build()
    except WonderlandError:
        raise
    except (TypeError, ValueError, RuntimeError, ArithmeticError, AttributeError, LookupError, MemoryError) as error:
        first = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise WonderlandError(f"{model.name} cannot be built with these arguments: {first}") from error
    # Weights, gradients and two moments of the optimizer.
    needed = 4 * sum(parameter.numel() * parameter.element_size() for parameter in built.parameters())
    if needed > available_bytes():
        raise WonderlandError(
            f"{model.name} has {sum(p.numel() for p in built.parameters()):,} parameters: training it takes about "
            f"{needed / 2**30:.1f} GiB, and {available_bytes() / 2**30:.1f} GiB are free. Choose a smaller model."
        )


def with_optimizer(recipe: Recipe, training: Training) -> Recipe:
    """The recipe with the optimizer that was named, and the rate and weight decay that were asked for."""
    if training.optimizer is not None:
        spec = parse_spec(training.optimizer, folders=("optim",))
        part = spec.part
        if not (isinstance(part, type) and issubclass(part, torch.optim.Optimizer)):
            raise WonderlandError(f"{spec.name} is not an optimizer.")
        arguments = dict(spec.arguments)
        usual = inspect.signature(part).parameters["lr"].default
        same_scale = spec.name.endswith(("Adam", "AdamW"))  # their learning rates are on the scale of the recipe's
        if "lr" in arguments and training.lr is not None:
            raise WonderlandError(
                "The learning rate is given twice, in lr (--lr) and in optimizer (--optimizer): give one of them."
            )
        lr = arguments.pop("lr", recipe.lr if same_scale else usual)
        if isinstance(lr, bool) or not isinstance(lr, int | float) or not 0 < lr < float("inf"):
            raise WonderlandError(f"lr must be more than 0, not {lr!r}.")
        recipe = replace(recipe, optimizer=Spec(spec.name, arguments), lr=float(lr))
    if training.weight_decay is not None:
        optimizer = recipe.optimizer
        recipe = replace(
            recipe, optimizer=Spec(optimizer.name, {**optimizer.arguments, "weight_decay": training.weight_decay})
        )
    return recipe


def with_schedule(recipe: Recipe, training: Training) -> Recipe:
    """The recipe with the schedule that was named."""
    if training.schedule is None:
        return recipe
    spec = parse_spec(training.schedule, folders=("optim",))
    if isinstance(spec.part, type):
        raise WonderlandError(f"{spec.name} is not a schedule.")
    try:
        factor = float(spec.build()(0, 10))
    except WonderlandError:
        raise
    except (TypeError, ValueError, AttributeError) as error:
        raise WonderlandError(f"{spec.name} is not a schedule.") from error
    assert factor == factor
    return replace(recipe, schedule=spec)


def with_scaled_rate(recipe: Recipe, usual: int, scale: str | None) -> Recipe:
    r"""The recipe with its rate scaled for a batch of another size than usual.

    .. math:: \eta' = \eta \frac{B}{B_0} \text{ (linear)}, \qquad \eta' = \eta \sqrt{\frac{B}{B_0}} \text{ (root)}

    Book: D2L 13.5. Papers: Goyal et al., 2017 (linear, for gradient descent); Malladi et al., 2022 (root, for Adam).
    """
    ratio = recipe.batch_size / usual
    factor = {None: 1.0, "linear": ratio, "root": ratio**0.5}[scale]
    return recipe if factor == 1 else recipe.changed(lr=recipe.lr * factor)
