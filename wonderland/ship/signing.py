"""Proof of origin: a signature over the digests of every file in a run folder, with Ed25519.

The digests that a run records find damage. They do not find a change on purpose, since whoever changes a file can write new
digests. A signature can only be made with the private key, so it shows who made the run.
"""

import base64
import binascii
import json
import os
from pathlib import Path
from typing import Any

from wonderland.core import WonderlandError, disk_trouble, need, read_bytes, read_json, sha256, write_bytes, write_json
from wonderland.core.limits import check
from wonderland.core.schema import entries, one_of, require, text, values

SIGNATURE = "signature.json"
_PRIVATE, _PUBLIC = b"-----BEGIN PRIVATE KEY-----", b"-----BEGIN PUBLIC KEY-----"
_SCHEMA = entries({"algorithm": one_of("ed25519"), "files": values(text), "signature": text})


def new_key(path: str | Path) -> Path:
    """Write a new private key to `path`, readable by its owner only, and its public key to `path` with .pub; returns the latter."""
    path = Path(path)
    public = path.with_name(path.name + ".pub")
    for existing in (path, public):
        if os.path.lexists(existing):
            raise WonderlandError(f"{existing} exists: a key is never overwritten. Choose another name.")
    keys, serialization = _ed25519()
    key = keys.Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(private)
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise disk_trouble(error, path) from error
    write_bytes(
        public,
        key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo),
    )
    return public


def sign(folder: str | Path, key: str | Path) -> list[str]:
    """Sign a finished run with a private key: writes signature.json, and returns the names of the files that it covers."""
    folder = Path(folder)
    if not (folder / "trust.json").is_file():
        raise WonderlandError(f"{folder} holds no finished run: sign it when it is finished.")
    signer = _private_key(Path(key))
    files = manifest(folder)
    signature = base64.b64encode(signer.sign(_message(files))).decode()
    write_json(folder / SIGNATURE, {"algorithm": "ed25519", "files": files, "signature": signature})
    return sorted(files)


def verify(folder: str | Path, key: str | Path) -> list[str]:
    """Check the signature of a run with a public key; returns the names of the files that it covers.

    A wrong key, a changed signature, and a file that was added, removed or changed since are refused by name.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise WonderlandError(f"There is no run in {folder}: the folder does not exist.")
    path = folder / SIGNATURE
    if not os.path.lexists(path):
        raise WonderlandError(f"The run in {folder} is not signed: it has no {SIGNATURE}.")
    public = _public_key(Path(key))
    stored = read_json(path)
    require(stored, _SCHEMA, path)
    from cryptography.exceptions import InvalidSignature

    try:
        public.verify(base64.b64decode(stored["signature"], validate=True), _message(stored["files"]))
    except (InvalidSignature, binascii.Error, ValueError) as error:
        raise WonderlandError(
            f"The signature of {folder} is not by the owner of {key}: it was changed, or made with another key."
        ) from error
    current, signed = manifest(folder), stored["files"]
    for done, names in (
        ("changed", [name for name in signed if name in current and current[name] != signed[name]]),
        ("removed", [name for name in signed if name not in current]),
        ("added", [name for name in current if name not in signed]),
    ):
        if names:
            more = len(names) - 1
            others = f" and {more} other file{'s' if more > 1 else ''} were" if more else " was"
            raise WonderlandError(f"{folder / min(names)}{others} {done} after the run was signed.")
    return sorted(signed)


def manifest(folder: Path) -> dict[str, str]:
    """The digest of every file of a run, by its path inside the folder; links and devices are refused.

    The lock and the signature itself are left out.
    """
    digests: dict[str, str] = {}
    for place, folders, names in os.walk(folder, onerror=_unreadable):
        for name in sorted([*folders, *names]):
            path = Path(place, name)
            inner = path.relative_to(folder).as_posix()
            if path.is_symlink():
                raise WonderlandError(f"{path} is a link, which a signature cannot cover: put the file in its place.")
            if name in names and name != ".lock" and inner != SIGNATURE:
                digests[inner] = sha256(path)
        check("run_files", len(digests), folder)
    return digests


def _message(files: dict[str, str]) -> bytes:
    """What is signed: the purpose, and every name with its digest in one order."""
    return b"wonderland run folder 1\n" + json.dumps(files, sort_keys=True).encode()


def _private_key(path: Path) -> Any:
    content = _key_file(path)
    if content.startswith(_PUBLIC):
        raise WonderlandError(f"{path} is a public key: signing needs the private one, the file without .pub.")
    keys, serialization = _ed25519()
    return _read_key(path, lambda: serialization.load_pem_private_key(content, None), keys.Ed25519PrivateKey)


def _public_key(path: Path) -> Any:
    content = _key_file(path)
    if content.startswith(_PRIVATE):
        raise WonderlandError(
            f"{path} is a private key: give the public one, {path.name}.pub, and keep this one secret."
        )
    keys, serialization = _ed25519()
    return _read_key(path, lambda: serialization.load_pem_public_key(content), keys.Ed25519PublicKey)


def _key_file(path: Path) -> bytes:
    return read_bytes(path, 1 << 16)


def _read_key(path: Path, read: Any, expected: type) -> Any:
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        key = read()
    except (ValueError, TypeError, UnsupportedAlgorithm) as error:
        raise WonderlandError(
            f"{path} is not a key that can be read: make one with wonderland sign --new-key FILE."
        ) from error
    if not isinstance(key, expected):
        raise WonderlandError(f"{path} is a key of another algorithm: Ed25519 is needed.")
    return key


def _ed25519() -> tuple[Any, Any]:
    need("cryptography", extra="sign", why="to sign runs and to verify them")
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519

    return ed25519, serialization


def _unreadable(error: OSError) -> None:
    raise WonderlandError(f"{error.filename} cannot be read ({error.strerror}).") from error
