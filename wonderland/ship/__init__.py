"""Run: save, load, predict."""

from wonderland.ship.run import Run, load
from wonderland.ship.signing import new_key, sign, verify
from wonderland.ship.store import FORMAT, load_model, read_config, save_model
from wonderland.ship.tables import table_format, write_table

__all__ = [
    "FORMAT",
    "Run",
    "load",
    "load_model",
    "new_key",
    "read_config",
    "save_model",
    "sign",
    "table_format",
    "verify",
    "write_table",
]
