"""From a torch program to one ONNX file: texts are looked up inside, classes come out by name, the run is described."""

import contextlib
import io
import json
import logging
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import torch

from wonderland.core import WonderlandError, need
from wonderland.data.ports import Port

OPSET = 20
ELEMENTS = {"float": "FLOAT", "double": "DOUBLE", "int64": "INT64", "uint8": "UINT8", "string": "STRING"}


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Without the exporter's progress lines and notes, which say nothing that the check of the file does not."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def to_onnx(graph: torch.export.ExportedProgram, program: Any, about: Mapping[str, Any]) -> Any:
    """An ONNX model (a protocol buffer) of the exported program; `about` becomes its metadata."""
    need("onnx", extra="export", why="to write ONNX files")
    need("onnxscript", extra="export", why="to write ONNX files")
    inner = [f"input {i}" for i in range(len(program.ports))]
    results = [f"output {name}" for name in program.names]
    with quiet(), torch.no_grad():
        exported = torch.onnx.export(
            graph, (), input_names=inner, output_names=results, dynamo=True, opset_version=OPSET, verify=False
        )
    assert exported is not None
    model = exported.model_proto
    _name_inputs(model, program.ports, inner)
    _name_outputs(model, program, results)
    _separate_names(model)
    del model.metadata_props[:]
    for key, value in about.items():
        entry = model.metadata_props.add()
        entry.key, entry.value = f"wonderland.{key}", value if isinstance(value, str) else json.dumps(value)
    model.producer_name, model.producer_version = "wonderland", str(about.get("version", ""))
    model.doc_string = ""
    for node in model.graph.node:
        del node.metadata_props[:]
        node.doc_string = ""
    for value in (*model.graph.value_info, *model.graph.initializer):
        del value.metadata_props[:]
    return model


def _name_inputs(model: Any, ports: tuple[Port, ...], inner: list[str]) -> None:
    """Inputs by the names of ports; a text is looked up in the table of its port."""
    from onnx import TensorProto, helper

    graph = model.graph
    first, used = [], {name for node in graph.node for name in node.input}
    for place, (port, name) in enumerate(zip(ports, inner, strict=True)):
        kind = getattr(TensorProto, ELEMENTS[port.type])
        declared = helper.make_tensor_value_info(port.name, kind, list(port.shape))
        declared.doc_string = port.about
        graph.input[place].CopyFrom(declared)
        if name not in used:
            continue
        if port.type == "string":
            keys = list(port.codes) or [""]
            values = list(port.codes.values()) or [0]
            first.append(
                helper.make_node(
                    "LabelEncoder", [port.name], [name], domain="ai.onnx.ml",
                    keys_strings=keys, values_int64s=values, default_int64=0,
                )
            )  # fmt: skip
        else:
            first.append(helper.make_node("Identity", [port.name], [name]))
    nodes = [*first, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    if any(port.type == "string" for port in ports):
        model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))


def _name_outputs(model: Any, program: Any, results: list[str]) -> None:
    """Outputs by their names, `_` added where an input is called the same; a class by its name, from its number."""
    from onnx import TensorProto, helper

    graph, taken = model.graph, {port.name for port in program.ports}
    for place, (name, result) in enumerate(zip(program.names, results, strict=True)):
        public = name
        while public in taken:
            public += "_"
        output = graph.output[place]
        if output.type.tensor_type.shape.dim[0].dim_param:
            output.type.tensor_type.shape.dim[0].dim_param = "rows"
        if place == 0 and program.classes is not None:
            names: Any = [name.encode() for name in program.classes]
            labels = helper.make_tensor("class names", TensorProto.STRING, [len(names)], names)
            graph.initializer.append(labels)
            graph.node.append(helper.make_node("Gather", ["class names", result], [public]))
            sizes = [d.dim_param or d.dim_value for d in output.type.tensor_type.shape.dim]
            output.CopyFrom(helper.make_tensor_value_info(public, TensorProto.STRING, sizes))
        else:
            graph.node.append(helper.make_node("Identity", [result], [public]))
            output.name = public


def _separate_names(model: Any) -> None:
    """Values inside the graph get other names than its inputs and outputs, which are the names of columns."""
    graph = model.graph
    public = {value.name for value in (*graph.input, *graph.output)}
    inside = {name for node in graph.node for name in node.output} | {value.name for value in graph.initializer}
    written_twice = {value.name for value in graph.input} & inside
    if not written_twice:
        return
    if graph.value_info:
        del graph.value_info[:]
    clash = {name: f"inside {name}" for name in written_twice}
    while set(clash.values()) & (inside | public):
        clash = {name: f"{new}_" for name, new in clash.items()}
    produced: set[str] = set()
    for value in graph.initializer:
        if value.name in clash:
            value.name = clash[value.name]
            produced.add(value.name)
    # A name is the input's until a node of the exporter writes it; readers in front of that node are our own.
    ours = {"LabelEncoder", "Identity"}
    for node in graph.node:
        feeding = node.op_type in ours and len(node.output) == 1 and node.output[0].startswith("input ")
        for place, name in enumerate(node.input):
            if name in clash and not feeding:
                node.input[place] = clash[name]
        for place, name in enumerate(node.output):
            if name in clash:
                node.output[place] = clash[name]


def check(content: bytes) -> None:
    """ONNX's own full check, with shapes."""
    need("onnx", extra="export", why="to check ONNX files")
    from onnx import checker, shape_inference

    try:
        checker.check_model(content, full_check=True)
    except (checker.ValidationError, shape_inference.InferenceError) as error:
        reason = str(error).strip().splitlines()[0][:200]
        raise WonderlandError(f"The exported file does not pass ONNX's own check: {reason}") from error
