"""What mkdocs cannot know: a reference page for each folder of the package, and one for the command line."""

import argparse
import importlib
import inspect
import sys
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))

from equations import EquationsExtension

FOLDERS = {
    "core": "Specs, files, graphs, seeds",
    "ops": "Operations",
    "autodiff": "Derivatives",
    "laws": "Laws",
    "nn": "Blocks",
    "optim": "Optimizers and schedules",
    "probability": "Probability",
    "solvers": "Linear models",
    "models": "Models",
    "checkpoints": "Published weights",
    "generation": "Generation",
    "data": "Data",
    "trust": "Trust",
    "understand": "Understanding models",
    "tasks": "Tasks",
    "train": "Training",
    "rl": "Decisions",
    "kinds": "Kinds of data",
    "ship": "Runs and export",
    "search": "Hyperparameter search",
    "road": "Fit",
}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.markdown_extensions.append(EquationsExtension())  # pyright: ignore
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for folder, title in FOLDERS.items():
        files.append(File.generated(config, f"reference/{folder}.md", content=reference(folder, title)))
    files.append(File.generated(config, "reference/command_line.md", content=command_line()))
    return files


def reference(folder: str, title: str) -> str:
    """A page with each public name of a folder, where it is defined."""
    module = importlib.import_module(f"wonderland.{folder}")
    lines = [f"# {title}", "", f"`wonderland.{folder}`: {first_sentence(module)}", ""]
    for name in sorted(module.__all__, key=lambda name: (name.isupper(), name)):
        place = where(getattr(module, name), name)
        if place:
            lines += [f"::: {place}", ""]
        else:
            lines += [f"## {name}", "", f"`wonderland.{folder}.{name}`", ""]
    return "\n".join(lines)


def first_sentence(module: Any) -> str:
    return (module.__doc__ or "").strip().split("\n")[0]


def where(thing: Any, name: str) -> str | None:
    """The path of a class, function or module, as mkdocstrings finds it by reading source files."""
    if inspect.ismodule(thing):
        return thing.__name__
    place = getattr(thing, "__module__", None)
    if not isinstance(place, str) or not place.startswith("wonderland") or getattr(thing, "__name__", None) != name:
        return None
    return f"{place}.{name}" if hasattr(sys.modules.get(place), name) else None


def command_line() -> str:
    """The help of every verb."""
    from wonderland.cli.main import parser

    top = parser()
    lines = ["# Command line", "", "```text", top.format_help().rstrip(), "```", ""]
    for action in top._actions:
        if isinstance(action, argparse._SubParsersAction):
            for verb, sub in action.choices.items():
                lines += [f"## {verb}", "", "```text", sub.format_help().rstrip(), "```", ""]
    return "\n".join(lines)
