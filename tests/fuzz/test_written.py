"""Text that anybody may write: specs as calls, regular expressions, JSON schemas, tables, images, tokenizers, checkpoints."""

import contextlib
import copy
import io
import json
import random
import shutil
import time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

import wonderland
from tests.fuzz import corpus, mutate, mutate_files, mutate_tensors, subjects
from wonderland.core import WonderlandError, parse_spec
from wonderland.generation.grammar.json_schema import json_schema
from wonderland.generation.grammar.matching import matching

PIECES = [bytes([value]) for value in range(256)]
quick = settings(
    max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None
)


@contextlib.contextmanager
def in_a_sentence(seconds: float = 1.0):
    """Accepted or refused, within CPU time."""
    began = time.process_time()
    with contextlib.suppress(WonderlandError):
        yield
    assert time.process_time() - began < seconds


@pytest.mark.parametrize("text", corpus.SPECS, ids=range(len(corpus.SPECS)))
def test_specs_that_once_failed(text):
    with in_a_sentence():
        parse_spec(text)


NAMES = st.sampled_from(
    ["Mamba", "nn.MLP", "Decoder", "models.TableNet", "gelu", "os.system", "x", "nn.", "ResNet.resnet18"]
)
VALUES = st.recursive(
    st.one_of(st.integers().map(str), st.floats().map(repr), st.text(max_size=5).map(repr), NAMES, st.just("None")),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        st.tuples(NAMES, st.sampled_from(["dim", "depth", "mixer", "*", "**", "x"]), inner).map(
            lambda t: f"{t[0]}({t[1]}={t[2]})"
        ),
    ),
    max_leaves=8,
)


@quick
@given(st.one_of(VALUES, st.text(max_size=60)))
def test_specs_written_as_calls(text):
    with in_a_sentence():
        parse_spec(text)


@quick
@given(st.text("ab()[]{}|*+?\\^$.,-0123456789wdsé", max_size=30))
def test_regular_expressions(pattern):
    with in_a_sentence():
        matching(pattern, PIECES)


@pytest.mark.parametrize("pattern", corpus.PATTERNS, ids=range(len(corpus.PATTERNS)))
def test_regular_expressions_that_once_failed(pattern):
    with in_a_sentence():
        matching(pattern, PIECES)


@pytest.mark.parametrize("schema", corpus.SCHEMAS, ids=range(len(corpus.SCHEMAS)))
def test_schemas_that_once_failed(schema):
    with in_a_sentence():
        json_schema(schema, PIECES)


def test_mutated_schemas():
    schema = {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 9},
              "b": {"type": "array", "items": {"enum": ["x", 1]}, "maxItems": 3}, "c": {"type": "string", "pattern": "a+"}}}  # fmt: skip
    for seed in range(60):
        changed, _ = mutate.mutate_json_value(schema, random.Random(seed))
        with in_a_sentence():
            json_schema(changed, PIECES)


def test_mutated_tables_and_images(tmp_path):
    frame = b"a,b,answer\n" + b"".join(f"{i},{'xyz'[i % 3]},{'yes' if i % 2 else 'no'}\n".encode() for i in range(40))
    drawn = io.BytesIO()
    Image.fromarray(np.arange(192, dtype=np.uint8).reshape(8, 8, 3)).save(drawn, "PNG")
    (tmp_path / "pictures" / "one").mkdir(parents=True)
    for seed in range(60):
        draw = random.Random(seed)
        (tmp_path / "rows.csv").write_bytes(mutate.mutate_bytes(frame, draw)[0])
        with in_a_sentence():
            wonderland.kinds.open(tmp_path / "rows.csv")
        (tmp_path / "pictures" / "one" / "a.png").write_bytes(mutate.mutate_bytes(drawn.getvalue(), draw)[0])
        with in_a_sentence():
            wonderland.kinds.open(tmp_path / "pictures")


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return tmp_path_factory.mktemp("entries")


@pytest.mark.parametrize("entry", corpus.ENTRIES, ids=lambda entry: f"{entry[0]}-{entry[2][-1]}")
def test_entries_that_once_failed(home, entry):
    name, file, path, value = entry
    copied(home, name)
    whole = json.loads((home / "changed" / file).read_bytes())
    holder = whole
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = copy.deepcopy(value)
    (home / "changed" / file).write_text(json.dumps(whole))
    mutate_files.sign_again(home / "changed")
    with pytest.raises(WonderlandError):
        wonderland.load(home / "changed")


@pytest.mark.parametrize("text", corpus.TEXTS, ids=range(len(corpus.TEXTS)))
def test_json_that_python_would_take(home, text):
    copied(home, "numbers")
    (home / "changed" / "config.json").write_text(text)
    with pytest.raises(
        WonderlandError, match=r"is not valid JSON: it is damaged or not ours|has 1,200,002 values; the limit is"
    ):
        wonderland.load(home / "changed")


def copied(home, name):
    """A copy of a run, which may be changed."""
    subject = subjects.make_run(name, home)
    shutil.rmtree(home / "changed", ignore_errors=True)
    shutil.copytree(subject.folder, home / "changed")
    return home / "changed", subject.new


@pytest.mark.parametrize("entry", corpus.TENSORS, ids=lambda entry: f"{entry[0]}-{entry[2]}")
def test_tensors_that_once_failed(home, entry):
    name, file, tensor, change = entry
    folder, new = copied(home, name)
    content = (folder / file).read_bytes()
    (folder / file).write_bytes(
        mutate_tensors.with_tensors(content, lambda tensors: tensors.update({tensor: change(tensors[tensor])}))
    )
    mutate_files.sign_again(folder)
    if file.startswith("checkpoint"):
        (folder / "model.safetensors").unlink()
    with pytest.raises(WonderlandError):
        wonderland.load(folder).predict(new) if (folder / "model.safetensors").exists() else wonderland.fit(
            resume=folder
        )


@pytest.mark.parametrize("entry", corpus.RENAMED, ids=lambda entry: entry[2])
def test_other_names_that_once_failed(home, entry):
    name, file, tensor, other = entry
    folder, _ = copied(home, name)
    content = (folder / file).read_bytes()
    changed = mutate_tensors.with_tensors(content, lambda tensors: tensors.update({other: tensors.pop(tensor)}))
    (folder / file).write_bytes(changed)
    mutate_files.sign_again(folder)
    (folder / "model.safetensors").unlink()
    with in_a_sentence():
        wonderland.fit(resume=folder)


@pytest.mark.parametrize("entry", corpus.CONTENTS, ids=lambda entry: f"{entry[0]}-{entry[2][:4]!r}")
def test_contents_that_once_failed(home, entry):
    name, file, content = entry
    folder, _ = copied(home, name)
    (folder / file).write_bytes(content)
    (folder / "report.html").unlink()
    with in_a_sentence():
        wonderland.fit(resume=folder)
