"""References within a JSON schema: what a `$ref` points to, and whether it is recursive."""

from collections.abc import Mapping
from typing import Any

from wonderland.core import WonderlandError


class References:
    """The references of one schema, `root`."""

    def __init__(self, root: Any):
        self.root = root
        self._recursive: dict[str, bool] = {}

    def target(self, name: Any, where: str) -> Any:
        """The schema that a reference such as "#/$defs/link" points to; `where` names its place in messages."""
        target = self.root
        steps = name.split("/") if isinstance(name, str) else [""]
        if steps[0] != "#":
            raise WonderlandError(
                f"{where} refers to {str(name)[:60]!r}: only references within the schema (#/...) are supported."
            )
        for step in steps[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(target, Mapping) or step not in target:
                raise WonderlandError(f"{where} refers to {name[:60]!r}, which is not in the schema.")
            target = target[step]
        return target

    def recursive(self, name: str, where: str) -> bool:
        """Whether the target of a reference contains the same reference, directly or through others."""
        if name not in self._recursive:
            seen: set[str] = set()
            stack = [name]
            while stack:
                for other in _names(self.target(stack.pop(), where)):
                    if other not in seen:
                        seen.add(other)
                        stack.append(other)
            self._recursive[name] = name in seen
        return self._recursive[name]


def _names(schema: Any) -> list[str]:
    """All references in a schema, at any depth."""
    names, stack = [], [schema]
    while stack:
        part = stack.pop()
        if isinstance(part, Mapping):
            if isinstance(part.get("$ref"), str):
                names.append(part["$ref"])
            stack += part.values()
        elif isinstance(part, list):
            stack += part
    return names
