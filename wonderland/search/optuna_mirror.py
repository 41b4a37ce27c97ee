"""Trials of a study as trials of an Optuna study, for its samplers and its dashboard."""

import math
from typing import Any

from wonderland.core import WonderlandError, need
from wonderland.data.sql import is_url, recorded_url
from wonderland.search.space import Choice, Float, Setting
from wonderland.search.study import Study
from wonderland.search.trial import Trial

MARK = "wonderland_trial"


def mirror(study: Study, storage: Any, *, study_name: str) -> Any:
    """Write every trial that is over into an Optuna study, once: settings, scores of rungs as intermediate values, and the outcome.

    `storage` is what Optuna takes: a URL, the path of a journal file, or a storage. Trials that were paused for good are pruned ones. A trial that
    is there already is not written again, by several workers either. Returns the Optuna study.
    """
    optuna = need("optuna", extra="search", why="to write trials for it")
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        with study.journal.locked():
            mirrored = optuna.create_study(
                storage=_storage(storage, optuna), study_name=study_name, direction="minimize", load_if_exists=True
            )
            written = {trial.user_attrs.get(MARK) for trial in mirrored.get_trials(deepcopy=False)}
            for trial in study.trials:
                if trial.running is None and trial.number not in written:
                    mirrored.add_trial(frozen(study, trial, optuna))
    except WonderlandError:
        raise
    except Exception as error:  # of whichever storage was named
        shown = recorded_url(storage) if is_url(storage) else storage
        raise WonderlandError(
            f"The trials could not be written to Optuna's storage {shown}: {type(error).__name__}: {str(error).splitlines()[0][:200]}"
        ) from error
    finally:
        optuna.logging.set_verbosity(before)
    return mirrored


def _storage(storage: Any, optuna: Any) -> Any:
    if isinstance(storage, str) and not is_url(storage):
        backend = optuna.storages.journal.JournalFileBackend(storage)
        return optuna.storages.JournalStorage(backend)
    return storage


def frozen(study: Study, trial: Trial, optuna: Any) -> Any:
    """A trial as Optuna keeps those that are over."""
    states = optuna.trial.TrialState
    whole = trial.rung == len(study.tuner.shares) - 1
    state = states.FAIL if trial.failed is not None or not trial.scores else states.COMPLETE if whole else states.PRUNED
    space = study.space
    names = [name for name in space.names if name in trial.settings]
    values = {name: trial.settings[name] for name in names}
    return optuna.trial.create_trial(
        state=state,
        value=trial.scores[-1] if state == states.COMPLETE else None,
        params=values,
        distributions={name: distribution(space.settings[name], optuna) for name in names},
        intermediate_values={
            trial.steps[rung] if rung < len(trial.steps) else rung: score
            for rung, score in enumerate(trial.scores)
            if math.isfinite(score)
        },
        user_attrs={MARK: trial.number, "seconds": trial.seconds, "restarts": trial.restarts}
        | ({"failed": trial.failed} if trial.failed else {})
        | ({"cost": trial.cost} if trial.cost is not None else {}),
    )


def distribution(setting: Setting, optuna: Any) -> Any:
    """A setting as a distribution of Optuna."""
    kinds = optuna.distributions
    if isinstance(setting, Choice):
        return kinds.CategoricalDistribution(setting.choices)
    owner = kinds.FloatDistribution if isinstance(setting, Float) else kinds.IntDistribution
    return owner(setting.low, setting.high, log=setting.log)
