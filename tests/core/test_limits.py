"""Limits: what a refusal says, and the environment variable that raises them."""

import pytest

from wonderland.core import WonderlandError, load_tensors, read_header
from wonderland.core.limits import LIMITS, beyond, check, limit


def test_the_variable_raises_limits_by_name(monkeypatch):
    monkeypatch.setenv("WONDERLAND_LIMITS", "table_bytes=16GiB, table_columns=50000,image_bytes=1.5 MB")
    assert (limit("table_bytes"), limit("table_columns"), limit("image_bytes")) == (16 << 30, 50_000, 1_500_000)
    assert limit("shards") == LIMITS["shards"].most


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("table_byte=1", "WONDERLAND_LIMITS names 'table_byte'. Did you mean 'table_bytes' or 'line_bytes' or 'texts_bytes'?"),
        ("table_bytes=lots", "WONDERLAND_LIMITS sets table_bytes to 'lots': give a number such as 50000, 512MiB or 16GiB."),
        ("table_bytes=1parsec", "WONDERLAND_LIMITS sets table_bytes to '1parsec': give a number such as 50000, 512MiB or 16GiB."),
    ],
)  # fmt: skip
def test_a_variable_with_a_mistake(monkeypatch, text, message):
    monkeypatch.setenv("WONDERLAND_LIMITS", text)
    with pytest.raises(WonderlandError) as caught:
        limit("shards")
    assert str(caught.value) == message


def test_a_refusal_says_what_was_seen_what_is_allowed_and_how_to_raise_it():
    raised = "If you trust it, raise the limit: WONDERLAND_LIMITS="
    check("shards", 1000, "x")
    assert str(beyond("table_bytes", "a.csv")) == (
        f"a.csv has more than 4 GiB; the limit is 4 GiB. {raised}table_bytes=8GiB."
    )
    # Where both sizes round to the same, bytes are shown.
    assert str(beyond("json_bytes", "a", (16 << 20) + 1)) == (
        f"a has 16,777,217 bytes; the limit is 16,777,216. {raised}json_bytes=17MiB."
    )


def test_a_file_that_claims_more_than_the_disk_holds(tmp_path):
    """A sparse file of 3 GB takes no room on the disk, and would take 3 GB of memory."""
    path = tmp_path / "preprocess.safetensors"
    header = b'{"x":{"dtype":"U8","shape":[3000000000],"data_offsets":[0,3000000000]}}'
    with path.open("wb") as file:
        file.write(len(header).to_bytes(8, "little") + header)
        file.truncate(8 + len(header) + 3_000_000_000)
    held = path.stat().st_blocks * 512
    for read in (read_header, load_tensors):
        with pytest.raises(WonderlandError) as caught:
            read(path)
        assert str(caught.value) == (
            f"{path}, of which the disk holds {held:,} bytes, has 2.8 GiB; the limit is 64 MiB. If you trust it, raise the limit: "
            "WONDERLAND_LIMITS=sparse_bytes=3GiB."
        )
