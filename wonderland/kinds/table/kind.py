"""The kind table: an ensemble of small networks, from nearly linear to very flexible, weighted by their holdout scores."""

import math
from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn

from wonderland.core import Spec, WonderlandError
from wonderland.core.recipe import Ensemble, Recipe
from wonderland.data.dataset import GENERATE, Dataset
from wonderland.data.folders import refuse_tables, scan
from wonderland.data.several import read_folder, table_files
from wonderland.data.source import Contents, Glimpse
from wonderland.kinds.kind import Claim, Kind, model_space, task_spec
from wonderland.kinds.kind import evaluated_often_enough as often_enough
from wonderland.kinds.table import generated
from wonderland.kinds.table.bands import bands
from wonderland.kinds.table.baselines import baselines
from wonderland.kinds.table.column_importance import column_importance
from wonderland.kinds.table.encoder import TableEncoder
from wonderland.kinds.table.level_effects import start_from_levels
from wonderland.kinds.table.options import Options as TableOptions
from wonderland.kinds.table.table import Table
from wonderland.kinds.table.test_set import with_test_set
from wonderland.models import TableNet
from wonderland.optim import FusedAdamW
from wonderland.tasks import Generation, Task
from wonderland.tasks.leaderboard import Baseline
from wonderland.train.learner import GradientDescent

SMALL = 1500  # rows; smaller tables are trained in five folds
MEDIUM = 5000  # rows; smaller tables are trained in three folds, larger ones with a validation and a calibration part
NEARLY_LINEAR = 800  # rows; smaller tables of numbers have linear models among the members
SMALL_SIGMAS = (0.2, 2.0)
SIGMAS = (0.1, 0.5, 3.0)


class TableKind(Kind):
    """Rows and columns: CSV, JSON, Parquet, Feather, workbooks, databases, frames, arrays."""

    name = "table"
    Options = TableOptions
    models = (
        "models.TableNet",
        "models.GaussianProcess",
        "models.GLM",
        *(f"models.{name}" for name in generated.GENERATORS),
    )
    typical = {"numbers": 20, "levels": [10] * 5, "outputs": 2, "sigmas": list(SIGMAS) * 5, "dropout": [0.1] * 15, "shape": [25], "features": 25}  # noqa: RUF012  # fmt: skip

    def claims(self, glimpse: Glimpse, asked: Mapping[str, Any]) -> Claim | None:
        if glimpse.plain_text is not None:
            return None
        if glimpse.path is not None and glimpse.path.is_dir():
            listing = scan(glimpse.path)
            tables = table_files(glimpse.path) and not (listing.files or listing.loose)
            return Claim(0.2, "it is a folder with tables") if tables else None
        return None if glimpse.frame is None else Claim(0.5, "it has rows and columns")

    def open(self, glimpse: Glimpse, options: TableOptions, test: Glimpse | None = None) -> Table:
        contents = table_contents(glimpse)
        assert contents.frame is not None
        if options.task == GENERATE:
            self.refuse_test(test, "rows to generate are split by themselves")
            return generated.open_rows(contents, options)
        named = options.target is not None or contents.target in options.drop
        table = Table.from_frame(
            contents.frame,
            target=options.target if named else contents.target,
            task=options.task,
            group=options.group,
            time=options.time,
            keep=options.keep,
            drop=options.drop,
            split=options.split,
            strict=options.strict,
            name=contents.name,
            origin=contents.origin,
            findings=contents.findings,
        )
        return table if test is None else with_test_set(table, test)

    def folds(self, dataset: Dataset) -> int | None:
        """Folds for a small table, so that every training row is used for training; none with a time column."""
        rows = len(dataset)
        if dataset.task == GENERATE or rows >= MEDIUM or dataset.times is not None:
            return None
        return 3 if rows >= SMALL else min(5, max(2, rows // 4))

    def encoder(self, dataset: Table, parts: Any) -> Any:
        if dataset.task == GENERATE:
            return generated.SampledRows.fit(dataset, parts.train)
        return TableEncoder.fit(dataset, parts.train)

    def task(self, dataset: Any, parts: Any, encoder: Any) -> Task:
        return Generation() if dataset.task == GENERATE else super().task(dataset, parts, encoder)

    def read_encoder(self, saved: Any, tensors: dict[str, Tensor]) -> Any:
        if isinstance(saved, dict) and saved.get("task") == GENERATE:
            return generated.SampledRows.from_json(saved, tensors)
        return TableEncoder.from_json(saved, tensors)

    def recipe(self, dataset: Table, parts: Any, encoder: TableEncoder, task: Any) -> Recipe:
        """Defaults for a table of this size.

        The numbers were chosen on rows held out from training parts of bench/tables.py, where the recipe should take about ten
        times the CPU time of boosting: most of it is rows x members x epochs.
        """
        if isinstance(encoder, generated.SampledRows):
            return generated.recipe_of(encoder, task, len(parts.train))
        rows, numbers = len(parts.train), len(encoder.numbers)
        folds = None if parts.folds is None else int(parts.folds.max()) + 1
        small = rows < SMALL
        sigmas = SMALL_SIGMAS if small else SIGMAS
        # Small tables of numbers are often nearly linear, and a closed form is better there than steps of gradient descent.
        blend = dataset.options is not None and dataset.options.blend
        blend = blend or (folds is not None and task.classes is None and rows < NEARLY_LINEAR)
        linear = [False] * len(sigmas) + [True] * blend
        sigmas = (*sigmas, *sigmas[:1] * blend)
        members_without_layers: dict[str, Any] = {"linear": linear * (folds or 1)} if blend else {}
        members = len(sigmas) * (folds or 1)
        batch = 64 if small else 128 if folds else 256
        epoch = max(1, (rows - rows // folds if folds else rows) // batch)
        steps = max(150, 30 * epoch) if small else max(500, 20 * epoch) if folds else max(500, 16 * epoch)
        # For regression, dropout biases the predicted values more than it regularises.
        dropout = 0.1 if task.classes is not None else 0.0
        return Recipe(
            model=TableNet.spec(
                numbers=numbers,
                levels=[count for _, count in encoder.categories],
                outputs=task.outputs,
                sigmas=list(sigmas) * (folds or 1),
                dropout=[dropout] * members,
                dim=64 if rows < MEDIUM else 128,
                depth=3,
                number_dim=min(8, max(4, 64 // max(1, numbers))),
                frequencies=8,
                **members_without_layers,
            ),
            task=task_spec(task),
            learner=GradientDescent.spec(),
            steps=steps,
            batch_size=batch,
            lr=1e-2 * math.sqrt(max(rows, 100) / 4000) if small else 1.5e-2,
            optimizer=FusedAdamW.spec(weight_decay=0.01, betas=[0.9, 0.95]),
            schedule=Spec("optim.warmup_cosine", {"warmup": 0.05}),
            average=0.99,
            clip=None,
            evaluate_every=max(1, steps // 12),
            extensions=1 if rows >= 400 else 0,  # smaller tables are to be learned within a second
            ensemble=Ensemble(members, folds, len(sigmas)),
        )

    def named_recipe(self, recipe: Recipe, name: str, dataset: Any, parts: Any) -> Recipe:
        return generated.named_recipe(recipe) if dataset.task == GENERATE else recipe

    def adjust_to_steps(self, recipe: Recipe) -> Recipe:
        return often_enough(recipe) if recipe.task.name == "tasks.Generation" else recipe

    def prepare(self, model: nn.Module, plan: Any) -> nn.Module:
        """Levels of large categories start from their effects in the training rows."""
        if isinstance(model, TableNet):
            start_from_levels(model, plan)
        return model

    def baselines(self, plan: Any) -> list[Baseline]:
        return [] if isinstance(plan.task, Generation) else baselines(plan)

    def facts(self, run: Any, plan: Any) -> dict[str, Any]:
        """Importance of the columns, and predictions along the most important numbers."""
        if isinstance(plan.task, Generation):
            return generated.report_facts(run, plan)
        facts = column_importance(run, plan)
        curves = bands(run, plan, [row["name"] for row in facts["importance"]])
        return facts | ({"bands": curves} if curves else {})

    def space(self, recipe: Recipe) -> dict[str, Any]:
        return super().space(recipe) | model_space(
            recipe, {"model.dim": ("choice", [32, 64, 128, 256]), "model.depth": ("integer", 1, 5)}
        )


def table_contents(glimpse: Glimpse) -> Contents:
    """The contents of a source, with a frame: a folder is read as one table in several files."""
    contents = glimpse.contents
    if contents.folder is not None and contents.frame is None:
        paths = table_files(contents.folder)
        if not paths:
            refuse_tables(scan(contents.folder))
        else:
            contents.frame, contents.findings = read_folder(contents.folder, paths, (), glimpse.reading)
    if contents.frame is None:
        raise WonderlandError(f"{contents.name} is not a table: it has no columns.")
    return contents


KIND = TableKind()
