"""Episodes as examples, and the spaces a policy was made for."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from wonderland.core import WonderlandError
from wonderland.core.batch import Batch
from wonderland.data.dataset import Dataset
from wonderland.data.encoder import Encoder, Field
from wonderland.data.examples import Examples, RowExamples
from wonderland.data.ports import Passed, Port, Preprocessing
from wonderland.data.source import Glimpse
from wonderland.kinds.environment.world import OWN, REGISTERED, Observations, World, episode_seed
from wonderland.rl import environment
from wonderland.rl.control import Spaces, best_action
from wonderland.rl.on_policy import Turn
from wonderland.rl.vector import LIMIT


class Turns:
    """What a learner is given at each step: its number, and how to make the environment."""

    per_epoch = 1

    def __init__(self, world: World, size: int):
        self.world, self.size = world, size

    def stream(self, first: int, stop: int) -> Any:
        """Steps `first` to `stop - 1`."""
        return (Turn(number, self.world.make) for number in range(first, stop))


class EpisodeExamples(Examples):
    """Episodes of an environment; a part is the numbers they begin with."""

    unit = "episode"

    def __init__(self, world: World):
        self.world = world

    def shuffled(
        self,
        part: Any,
        *,
        size: int,
        seed: int,
        rows: Sequence[np.ndarray] | None = None,
        augment: Any = None,
        workers: int = 0,
    ) -> Turns:
        return Turns(self.world, size)

    def in_order(self, part: Any, *, size: int = 2048, most: int | None = None) -> Iterator[Batch]:
        """The first observations of episodes."""
        numbers = np.asarray(part)[:most]
        env = self.world.make()
        for first in range(0, len(numbers), size):
            seen = [environment.reset(env, episode_seed(number)) for number in numbers[first : first + size]]
            yield Batch({"x": torch.from_numpy(np.stack(seen).astype(np.float32))})
        env.close()

    def count(self, part: Any) -> int:
        return len(part)

    def everything(self) -> np.ndarray:
        return np.arange(10_000, 10_000 + self.world.episodes)

    def first(self, part: Any, count: int = 1) -> Batch:
        return next(self.in_order(np.arange(count), size=count))

    def play(self, model: Any, part: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return and length of each episode of a part, with the best action of each moment."""
        env, act = self.world.make(), model.act()
        returns, lengths = np.zeros(len(part)), np.zeros(len(part), np.int64)
        for place, number in enumerate(part):
            observation, over = environment.reset(env, episode_seed(number)), False
            while not over:
                action = best_action(model, act(observation[None])[0])
                observation, reward, ended, cut = environment.step(env, action)
                returns[place] += reward
                lengths[place] += 1
                over = ended or cut or lengths[place] >= LIMIT
        env.close()
        return returns, lengths


class EnvironmentEncoder(Encoder):
    """Nothing is fitted before training: the policy itself keeps mean and variance of what it sees."""

    kind = "environment"
    classes = None

    def __init__(self, known: Spaces, name: str, episodes: int, limit: int | None):
        self.known, self.name, self.episodes, self.limit, self.noticed = known, name, episodes, limit, []

    def examples(self, dataset: Any) -> Examples:
        if isinstance(dataset, Observations):
            return RowExamples(torch.from_numpy(dataset.x), None, len(dataset))
        return EpisodeExamples(dataset)

    def open(self, source: Any, *, need_target: bool = False) -> Dataset:
        """An environment to play in, or a table of observations to act on."""
        named = isinstance(source, str) and not Path(source).exists()
        if named and (REGISTERED.fullmatch(source) or OWN.fullmatch(source)):
            world = World(source, episodes=self.episodes, limit=self.limit)
            if world.spaces != self.known:
                raise WonderlandError(
                    f"{world.name} has {world.spaces.features} observed numbers and {world.spaces.actions} actions, and this policy "
                    f"was made for {self.known.features} and {self.known.actions}."
                )
            return world
        if need_target:
            raise WonderlandError(
                "A policy is evaluated in an environment: say gym:NAME, or module:Class for your own."
            )
        contents = Glimpse(source).contents
        if contents.frame is None:
            raise WonderlandError(f"{contents.name} is no table of observations.")
        return Observations(contents.frame, self.known.features, contents.name)

    def schema(self) -> list[Field]:
        return [Field(f"observation {i}", "number") for i in range(self.known.features)]

    def module(self, *, double: bool = False) -> Preprocessing | str:
        return Passed(
            (Port("observation", "float", ("rows", self.known.features), about="observations, one in each row"),)
        )

    def samples(self, count: int, seed: int = 0) -> pd.DataFrame:
        """Observations of all sizes."""
        generator = np.random.default_rng(seed)
        drawn = generator.normal(size=(count, self.known.features)) * 10.0 ** generator.integers(-3, 4, (count, 1))
        drawn[0], drawn[1] = 0, 1e6
        return pd.DataFrame(drawn.astype(np.float32), columns=[field.name for field in self.schema()])

    def feed(self, dataset: Any, *, double: bool = False) -> dict[str, np.ndarray]:
        return {"observation": dataset.x}

    def arguments(self) -> dict[str, Any]:
        return vars(self.known)

    def batch_words(self, size: int, noun: str) -> str:
        return f"{size} transitions at a time"

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "spaces": vars(self.known),
            "name": self.name,
            "episodes": self.episodes,
            "limit": self.limit,
        }
