"""A software bill of materials: the packages that Wonderland and its extras bring, as CycloneDX JSON.

python -m bench.sbom [FILE]    # default sbom.json; what is not installed here is left out and counted
"""

import json
import re
import sys
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

from wonderland.core import write_text
from wonderland.version import __version__

NOT_SHIPPED = {"test", "bench", "docs"}


def project() -> dict[str, Any]:
    """The table of the project in pyproject.toml."""
    return tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def lines_of(name: str, extras: set[str]) -> list[str]:
    """The requirements of a package as they are written; ours from pyproject.toml, which may be newer than what is installed."""
    if name != "wonderland":
        return metadata.requires(name) or []
    optional = project()["optional-dependencies"]
    return [*project()["dependencies"], *(line for extra in sorted(extras) for line in optional[extra])]


def requirements(name: str, extras: set[str]) -> set[tuple[str, frozenset[str]]]:
    """What a package asks for on this machine, with these extras."""
    from packaging.requirements import Requirement

    found = set()
    for line in lines_of(name, extras):
        requirement = Requirement(line)
        marks = [requirement.marker is None or requirement.marker.evaluate({"extra": extra}) for extra in {"", *extras}]
        if any(marks):
            found.add((plain(requirement.name), frozenset(requirement.extras)))
    return found


def plain(name: str) -> str:
    """The name of a package as indexes write it.

    >>> plain("Typing_Extensions")
    'typing-extensions'
    """
    return re.sub(r"[-_.]+", "-", name).lower()


def closure(extras: set[str]) -> tuple[dict[str, set[str]], set[str]]:
    """Each installed package that is needed, with those that it needs; and those that are not installed."""
    waiting, needs, missing, seen = [("wonderland", frozenset(extras))], {}, set(), set()
    while waiting:
        name, wanted = waiting.pop()
        if (name, wanted) in seen:
            continue
        seen.add((name, wanted))
        try:
            asked = requirements(name, set(wanted))
        except metadata.PackageNotFoundError:
            missing.add(name)
            continue
        needs.setdefault(name, set()).update(other for other, _ in asked)
        waiting += asked
    return needs, missing


def component(name: str) -> dict[str, Any]:
    """One package: version, licence, and where its metadata come from."""
    about = metadata.metadata(name)
    version = metadata.version(name)
    licence = about.get("License-Expression") or (about.get("License") or "").splitlines()[:1]
    licence = licence if isinstance(licence, str) else "".join(licence)
    if not licence or len(licence) > 80:
        named = [
            line.rpartition(" :: ")[2] for line in about.get_all("Classifier") or () if line.startswith("License ::")
        ]
        licence = ", ".join(named) or "not stated"
    made = {"type": "library", "bom-ref": f"pkg:pypi/{name}@{version}", "name": name, "version": version}
    return made | {"purl": f"pkg:pypi/{name}@{version}", "licenses": [{"license": {"name": licence}}]}


def bill() -> tuple[dict[str, Any], set[str]]:
    """The bill of materials, and what of it is not installed here."""
    extras = set(project()["optional-dependencies"]) - NOT_SHIPPED
    needs, missing = closure(extras)
    own = needs.pop("wonderland", set())
    names = sorted(needs)
    reference = {name: component(name)["bom-ref"] for name in names}
    root = {"type": "library", "bom-ref": "wonderland", "name": "wonderland", "version": __version__}
    depends = [{"ref": "wonderland", "dependsOn": sorted(reference[name] for name in own if name in reference)}]
    depends += [
        {"ref": reference[name], "dependsOn": sorted(reference[other] for other in needs[name] if other in reference)}
        for name in names
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": root},
        "components": [component(name) for name in names],
        "dependencies": depends,
    }, missing


if __name__ == "__main__":
    made, missing = bill()
    path = Path(sys.argv[1] if len(sys.argv) > 1 else "sbom.json")
    write_text(path, json.dumps(made, indent=2) + "\n")
    print(f"{len(made['components'])} packages are in {path}.")
    if missing:
        print(f"Not installed here, and left out: {', '.join(sorted(missing))}.", file=sys.stderr)
