"""Environments: a policy by PPO, measured on episodes it has not seen."""

import base64
import io
import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from PIL import Image
from torch import Tensor

from wonderland.core import Spec, WonderlandError
from wonderland.core.recipe import Recipe
from wonderland.data.source import Glimpse
from wonderland.data.split import Split
from wonderland.kinds.environment.encoder import EnvironmentEncoder
from wonderland.kinds.environment.options import Options as EnvironmentOptions
from wonderland.kinds.environment.world import OWN, REGISTERED, World, episode_seed
from wonderland.kinds.kind import Claim, Kind, task_spec
from wonderland.optim import FusedAdamW
from wonderland.rl import A2C, DQN, PPO, REINFORCE, environment
from wonderland.rl.control import Spaces, best_action, fitting_model
from wonderland.tasks import Control, Task

WATCHED = 10  # episodes that decide which weights are kept
FRAMES, WIDTH = 50, 240
LONG = 1000  # steps of an episode, from where a million steps are taken, and a reward counts for longer


class EnvironmentKind(Kind):
    """Environments of gymnasium, and users' own."""

    name = "environment"
    Options = EnvironmentOptions
    models = ("rl.ActorCritic", "rl.QNetwork")
    typical = {"features": 4, "actions": 2}  # noqa: RUF012

    def claims(self, glimpse: Glimpse, asked: Mapping[str, Any]) -> Claim | None:
        if not isinstance(glimpse.source, str) or glimpse.path is not None:
            return None
        if glimpse.source.startswith("gym:"):
            return Claim(1.0, "it names an environment of gymnasium")
        return Claim(0.9, "it names a class of a module") if OWN.fullmatch(glimpse.source) else None

    def open(self, glimpse: Glimpse, options: EnvironmentOptions, test: Glimpse | None = None) -> World:
        self.refuse_test(test, "an environment is measured on episodes of its own")
        source = glimpse.source
        if glimpse.recorded and not REGISTERED.fullmatch(str(source)):
            raise WonderlandError(
                f"config.json names {str(source)[:100]!r}, and nothing is imported by a name found in a file: give your "
                "environment again with wonderland fit MODULE:CLASS --resume RUN."
            )
        if not isinstance(source, str) or not (REGISTERED.fullmatch(source) or OWN.fullmatch(source)):
            raise WonderlandError(
                f"{str(source)[:100]!r} names no environment: say gym:NAME, or module:Class for your own."
            )
        return World(source, episodes=options.episodes, limit=options.limit)

    def split(self, dataset: World, *, test: float, seed: int, plain: bool = False) -> Split:
        """Numbers of episodes: some to choose weights by, and as many to calibrate as to test."""
        count = dataset.episodes
        validation = np.arange(WATCHED)
        calibration = np.arange(1000, 1000 + count)
        note = "Training has episodes of its own; each part begins its episodes with other seeds."
        return Split(np.arange(0), validation, calibration, np.arange(200_000, 200_000 + count), note=note, seed=seed)

    def encoder(self, dataset: World, parts: Split) -> EnvironmentEncoder:
        return EnvironmentEncoder(dataset.spaces, dataset.name, dataset.episodes, dataset.limit)

    def task(self, dataset: World, parts: Split, encoder: EnvironmentEncoder) -> Task:
        return Control(actions=dataset.spaces.actions, continuous=dataset.spaces.continuous)

    def recipe(self, dataset: World, parts: Split, encoder: EnvironmentEncoder, task: Any) -> Recipe:
        options: EnvironmentOptions = dataset.options or EnvironmentOptions()
        known, name = dataset.spaces, options.learner or "ppo"
        asked = {"envs": options.environments, "horizon": options.horizon, "discount": options.discount}
        asked = {key: value for key, value in asked.items() if value is not None}
        if name == "reinforce" and asked.pop("horizon", None):
            raise WonderlandError("horizon is not for reinforce, which plays whole episodes: leave it out.")
        long = (dataset.longest or 0) >= LONG and name == "ppo"
        own: dict[str, dict[str, Any]] = {
            "ppo": _long(known) if long else {"horizon": 256 if known.continuous else 128},
            "a2c": {},
            "reinforce": {},
            "dqn": {},
        }
        learner = {"ppo": PPO, "a2c": A2C, "reinforce": REINFORCE, "dqn": DQN}[name].spec(**(own[name] | asked))
        steps = {"ppo": 125 if long else 150, "a2c": 1500, "reinforce": 300, "dqn": 500}[name]
        lr = {"ppo": 5e-4 if long else 1e-3, "a2c": 2e-3, "reinforce": 5e-3, "dqn": 1e-3}[name]
        return Recipe(
            model=fitting_model(learner, known),
            task=task_spec(task),
            learner=learner,
            optimizer=FusedAdamW.spec(weight_decay=0.0, eps=1e-5),
            schedule=Spec("optim.cosine"),
            steps=steps,
            batch_size=256 if name == "ppo" else 128,
            lr=lr,
            clip=10.0 if name == "dqn" else 0.5,
            evaluate_every=max(1, steps // 20),
        )

    def read_encoder(self, saved: Any, tensors: dict[str, Tensor]) -> EnvironmentEncoder:
        try:
            known, limit = Spaces(**saved["spaces"]), saved["limit"]
            sizes = (known.features, known.actions, saved["episodes"], 1 if limit is None else limit)
            fine = all(isinstance(size, int) and not isinstance(size, bool) and 1 <= size <= 1 << 24 for size in sizes)
            if not fine or not isinstance(known.continuous, bool) or not isinstance(saved["name"], str):
                raise TypeError
            return EnvironmentEncoder(known, saved["name"][:200], saved["episodes"], limit)
        except (KeyError, TypeError) as error:
            raise WonderlandError(
                "The preprocessing of this run is not for an environment: it is damaged or not ours."
            ) from error

    def facts(self, run: Any, plan: Any) -> dict[str, Any]:
        return {"episode": animated(run.model, plan.dataset), "columns_title": "What is observed"}


def _long(known: Spaces) -> dict[str, Any]:
    """PPO for long episodes; where actions are few, what comes after hundreds of steps counts nearly as much as what comes next."""
    patient = {} if known.continuous else {"discount": 0.999, "trace": 0.98, "entropy": 0.01}
    return {"envs": 16, "horizon": 512, "epochs": 4} | patient


def animated(model: Any, world: World) -> dict[str, Any]:
    """One episode as an animated GIF in a data URI; why there is none, where the environment draws nothing."""
    if not os.environ.get("DISPLAY"):
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")  # without a screen, pygame complains on stderr otherwise
    try:
        env = world.make(render=True)
        act, frames, total = model.act(), [], 0.0
        observation, over, steps = environment.reset(env, episode_seed(0)), False, 0
        while not over and steps < 1000:
            frames.append(env.render())
            observation, reward, ended, cut = environment.step(env, best_action(model, act(observation[None])[0]))
            total, steps, over = total + reward, steps + 1, ended or cut
        frames.append(env.render())
        env.close()
    except Exception as error:
        return {"why": f"{world.name} draws no pictures here ({environment.said(error)})."}
    if not all(isinstance(frame, np.ndarray) and frame.ndim == 3 for frame in frames):
        return {"why": f"{world.name} draws no pictures."}
    chosen = [frames[int(i)] for i in np.linspace(0, len(frames) - 1, min(FRAMES, len(frames)))]
    pictures = [Image.fromarray(np.ascontiguousarray(frame[..., :3])) for frame in chosen]
    height = max(1, round(pictures[0].height * WIDTH / pictures[0].width))
    small = [picture.resize((WIDTH, height)).quantize(32) for picture in pictures]
    out = io.BytesIO()
    small[0].save(out, "GIF", save_all=True, append_images=small[1:], duration=80, loop=0)
    return {
        "image": f"data:image/gif;base64,{base64.b64encode(out.getvalue()).decode()}",
        "return": total,
        "steps": steps,
    }


KIND = EnvironmentKind()
