"""Run: save, load, predict, export, serve."""

from wonderland.ship.exporting import Export, export
from wonderland.ship.predictor import Predictor
from wonderland.ship.run import Run, load
from wonderland.ship.serving.serve import serve
from wonderland.ship.signing import new_key, sign, verify
from wonderland.ship.store import FORMAT, load_model, read_config, save_model
from wonderland.ship.tables import table_format, write_table

__all__ = [
    "FORMAT",
    "Export",
    "Predictor",
    "Run",
    "export",
    "load",
    "load_model",
    "new_key",
    "read_config",
    "save_model",
    "serve",
    "sign",
    "table_format",
    "verify",
    "write_table",
]
