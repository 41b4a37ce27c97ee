"""Run: save, load, predict."""

from wonderland.ship.run import Run, load
from wonderland.ship.store import FORMAT, load_model, read_config, save_model
from wonderland.ship.tables import read_kind, write_table

__all__ = ["FORMAT", "Run", "load", "load_model", "read_config", "read_kind", "save_model", "write_table"]
