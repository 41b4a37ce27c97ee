"""GraphML, GML and GEXF files, read by networkx, as their writers leave them: without labels, or with several edges between two nodes."""

import re
from pathlib import Path
from typing import Any

from wonderland.core import WonderlandError, need, read_bytes

MARKUP = (".graphml", ".gml", ".gexf")


def read_markup(path: Path) -> Any:
    """The networkx graph of a file; XML that declares entities is refused."""
    networkx = need("networkx", extra="graphs", why=f"to read {path.suffix} files")
    content = read_bytes(path, "graph_bytes")
    if path.suffix.lower() != ".gml" and (b"<!entity" in content.lower() or b"<!doctype" in content[:4096].lower()):
        raise WonderlandError(f"{path} declares entities of its own, so it is not read.")
    try:
        if path.suffix.lower() == ".gml":
            return _gml(networkx, content)
        return (networkx.read_graphml if path.suffix.lower() == ".graphml" else networkx.read_gexf)(path)
    except Exception as error:
        said = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise WonderlandError(f"{path} cannot be read as {path.suffix[1:].lower()}: {said}") from error


def _gml(networkx: Any, content: bytes) -> Any:
    """GML with nodes named by their labels; by their ids where labels are missing or stand twice."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        text = content.decode("latin-1")
    label = "label"
    for _ in range(3):
        try:
            return networkx.parse_gml(text.splitlines(), label=label)
        except networkx.NetworkXError as error:
            if "label" in str(error) and label == "label":
                label = "id"
            elif "edge" in str(error) and "duplicated" in str(error) and "multigraph" not in text:
                text = re.sub(r"\bgraph\s*\[", "graph [ multigraph 1 ", text, count=1)
            else:
                raise
    raise WonderlandError("it names nodes and edges twice")
