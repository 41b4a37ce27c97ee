"""Proof of origin: a signature of a run, and everything that must not pass for one."""

import json
import shutil
import stat

import pytest

from tests import runs
from wonderland.cli.main import main
from wonderland.core import WonderlandError
from wonderland.ship import new_key, sign, verify
from wonderland.ship.signing import SIGNATURE


@pytest.fixture
def run(tmp_path):
    shutil.copytree(runs.classifier().folder, tmp_path / "run")
    return tmp_path / "run"


@pytest.fixture
def key(tmp_path):
    new_key(tmp_path / "key")
    return tmp_path / "key"


@pytest.fixture
def public(key):
    return key.with_name("key.pub")


def refused(folder, key, check=verify) -> str:
    with pytest.raises(WonderlandError) as caught:
        check(folder, key)
    return str(caught.value)


def test_a_signed_run_is_verified_by_the_public_key_alone(run, key, public):
    files = sign(run, key)
    key.unlink()
    assert verify(run, public) == files
    assert {"config.json", "model.safetensors", "trust.json", "report.html"} < set(files)
    assert SIGNATURE not in files
    assert ".lock" not in files
    assert any(name.startswith("checkpoint/") for name in files)


def test_a_private_key_is_for_its_owner_and_is_never_overwritten(key, public):
    assert stat.S_IMODE(key.stat().st_mode) == 0o600
    assert b"PRIVATE" not in public.read_bytes()
    before = key.read_bytes()
    with pytest.raises(WonderlandError, match="exists: a key is never overwritten"):
        new_key(key)
    assert key.read_bytes() == before


def test_a_changed_a_removed_and_an_added_file_are_named(run, key, public):
    sign(run, key)
    whole = (run / "times.jsonl").read_bytes()
    (run / "times.jsonl").write_bytes(whole + b" ")
    assert refused(run, public) == f"{run / 'times.jsonl'} was changed after the run was signed."
    (run / "times.jsonl").unlink()
    assert refused(run, public) == f"{run / 'times.jsonl'} was removed after the run was signed."
    (run / "times.jsonl").write_bytes(whole)
    (run / "checkpoint" / "extra").write_text("x")
    assert refused(run, public) == f"{run / 'checkpoint' / 'extra'} was added after the run was signed."
    (run / "checkpoint" / "more").write_text("x")
    assert (
        refused(run, public) == f"{run / 'checkpoint' / 'extra'} and 1 other file were added after the run was signed."
    )


def test_a_manifest_made_to_fit_changed_files_is_not_signed(run, key, public):
    from wonderland.ship.signing import manifest

    sign(run, key)
    (run / "model.safetensors").write_bytes(b"other weights")
    stored = json.loads((run / SIGNATURE).read_text())
    (run / SIGNATURE).write_text(json.dumps(stored | {"files": manifest(run)}))
    words = f"The signature of {run} is not by the owner of {public}: it was changed, or made with another key."
    assert refused(run, public) == words


def test_another_key(run, key, tmp_path):
    sign(run, key)
    new_key(tmp_path / "other")
    assert "is not by the owner of" in refused(run, tmp_path / "other.pub")


@pytest.mark.parametrize(
    "change", [lambda s: s[:-8], lambda s: "", lambda s: "!" * 88, lambda s: s + s, lambda s: s.lower()]
)
def test_a_truncated_or_changed_signature(run, key, public, change):
    sign(run, key)
    stored = json.loads((run / SIGNATURE).read_text())
    (run / SIGNATURE).write_text(json.dumps(stored | {"signature": change(stored["signature"])}))
    assert "is not by the owner of" in refused(run, public)


@pytest.mark.parametrize(
    "content", ["", "[]", "{}", "null", '{"algorithm": "none", "files": {}, "signature": ""}', "[" * 100_000]
)
def test_a_signature_file_that_is_none(run, key, public, content):
    sign(run, key)
    (run / SIGNATURE).write_text(content)
    assert "it is damaged or not ours." in refused(run, public)


def test_what_is_no_key(run, key, public, tmp_path):
    sign(run, key)
    said = refused(run, key)
    assert said == f"{key} is a private key: give the public one, key.pub, and keep this one secret."
    said = refused(run, public, sign)
    assert said == f"{public} is a public key: signing needs the private one, the file without .pub."
    words = "is not a key that can be read: make one with wonderland sign --new-key FILE."
    for content in (b"", b"x" * 100, key.read_bytes()[:60], b"\x00"):
        (tmp_path / "none").write_bytes(content)
        assert words in refused(run, tmp_path / "none", sign)
    (tmp_path / "cut.pub").write_bytes(public.read_bytes()[:60])
    assert words in refused(run, tmp_path / "cut.pub")
    assert refused(run, tmp_path / "absent") == f"{tmp_path / 'absent'} is missing."


def test_what_cannot_be_signed_or_verified(run, key, public, tmp_path):
    assert refused(run, public) == f"The run in {run} is not signed: it has no signature.json."
    assert refused(tmp_path / "x", public) == f"There is no run in {tmp_path / 'x'}: the folder does not exist."
    assert refused(tmp_path, key, sign) == f"{tmp_path} holds no finished run: sign it when it is finished."
    (run / "link").symlink_to("/etc/hostname")
    assert "is a link, which a signature cannot cover" in refused(run, key, sign)


def test_the_commands(run, tmp_path, capsys):
    key = str(tmp_path / "mine")
    assert main(["sign", str(run), "--new-key", key]) == 0
    assert main(["sign", str(run), "--key", key]) == 0
    assert main(["verify", str(run), "--key", key + ".pub"]) == 0
    assert "The signature is right" in capsys.readouterr().out
    (run / "trust.json").write_text("{}")
    assert main(["verify", str(run), "--key", key + ".pub"]) == 2
    assert main(["sign", "--key", key]) == 2
    assert main(["sign", str(run), "--key", key, "--new-key", key]) == 2
    assert main(["verify", str(run)]) == 2
    said = capsys.readouterr().err
    assert "trust.json was changed after the run was signed." in said
    assert "Give a run and --key FILE to sign it, or --new-key FILE to make a key." in said
    assert "Choose one of --key and --new-key." in said
