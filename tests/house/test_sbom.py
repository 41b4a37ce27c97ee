"""The bill of materials names what is installed, and refers to nothing that it does not have."""

from importlib import metadata

import torch

from bench.sbom import bill


def test_the_bill_of_materials_is_whole():
    made, missing = bill()
    found = {component["name"]: component["version"] for component in made["components"]}
    assert (made["bomFormat"], found["torch"]) == ("CycloneDX", metadata.version("torch"))
    assert torch.__version__.startswith(found["torch"].partition("+")[0])
    assert {"numpy", "safetensors", "fastapi", "starlette"} <= set(found)
    assert not {"pytest", "transformers"} & set(found)
    assert not missing & set(found)
    references = {component["bom-ref"] for component in made["components"]} | {"wonderland"}
    for entry in made["dependencies"]:
        assert {entry["ref"], *entry["dependsOn"]} <= references
    assert all(component["licenses"][0]["license"]["name"] for component in made["components"])
