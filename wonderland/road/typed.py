"""The options of `fit` for type checkers, written from the classes that own them by tests/house/test_typed.py."""

from pathlib import Path
from typing import Any, TypedDict


class FitOptions(TypedDict, total=False):
    """Options of training and of every kind of data."""

    kind: str | None
    optimizer: str | Any | None
    schedule: str | Any | None
    settings: str | list[str] | tuple[str, ...] | None
    epochs: float | None
    steps: int | None
    budget: float | str | None
    lr: float | str | None
    scale_lr: str | None
    weight_decay: float | None
    batch_size: int | None
    clip: float | None
    accumulate: int | None
    precision: str | None
    patience: int | None
    threads: int | None
    device: str | None
    level: float | None
    conformal: str | None
    metric: str | None
    cost: str | None
    abstain: float | None
    uncertainty: str | None
    weight_to: str | None
    leaderboard: str | None
    seed: int | None
    strict: bool | None
    encoding: str | None
    delimiter: str | None
    quote: str | None
    sheet: str | None
    split: str | None
    task: str | None
    group: str | None
    time: str | None
    keep: str | list[str] | tuple[str, ...] | None
    blend: bool | None
    drop: str | list[str] | tuple[str, ...] | None
    skip_broken: bool | None
    size: int | None
    start: str | Path | None
    method: str | None
    depth_decay: float | None
    unfreeze: float | None
    augment: str | None
    workers: int | None
    column: str | None
    tokens: str | None
    vocab: int | None
    context: int | None
    vectors: str | None
    lines: bool | None
    tokenizer: str | Path | None
    of: str | None
    directed: bool | None
    inductive: bool | None
    batches: str | None
    smiles: str | None
    horizon: int | None
    series: str | None
    known: str | list[str] | tuple[str, ...] | None
    past: str | list[str] | tuple[str, ...] | None
    season: int | None
    loss: str | None
    file_names: str | None
    rate: int | None
    seconds: float | None
    frames: int | None
    learner: str | None
    episodes: int | None
    environments: int | None
    discount: float | None
    limit: int | None
    user: str | None
    item: str | None
    rating: str | None
    when: str | None
    goal: str | None
    history: int | None
    question: str | None
