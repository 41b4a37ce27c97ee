"""Run: save, load, predict."""

from wonderland.tasks.writing import LanguageRun
from wonderland.ship.run import Run, load, load_encoder, outputs, read_task
from wonderland.ship.store import FORMAT, load_model, read_config, save_model
from wonderland.ship.tables import read_kind, write_table
from wonderland.tasks.translating import TranslationRun

__all__ = [
    "FORMAT",
    "LanguageRun",
    "Run",
    "TranslationRun",
    "load",
    "load_encoder",
    "load_model",
    "outputs",
    "read_config",
    "read_kind",
    "read_task",
    "save_model",
    "write_table",
]
