"""Compiled kernels: checked before they are loaded, built once by whoever comes first, and kept where nobody else can write."""

import os
import re
import stat
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import pytest
import torch

from wonderland.nn.mixers.mamba import Mamba
from wonderland.ops import kernel_cache, native

SMALL = 'extern "C" long answer() { return 42; }\n'


def forget():
    kernel_cache.clear()
    for cached in (native.status, native.library, native.function):
        cached.cache_clear()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Kernels as in a new process, with a cache of its own."""
    home = tmp_path / "cache"
    monkeypatch.setenv("WONDERLAND_CACHE", str(home))
    monkeypatch.delenv("WONDERLAND_QUIET")
    forget()
    yield home / "wonderland" / "kernels"
    forget()


@pytest.fixture
def small(cache, tmp_path, monkeypatch):
    """Two kernels that compile in a moment, and a temporary folder to look into."""
    sources, temporary = tmp_path / "sources", tmp_path / "temporary"
    sources.mkdir()
    temporary.mkdir()
    for name in ("one", "two"):
        (sources / f"{name}.cpp").write_text(SMALL)
    monkeypatch.setattr(kernel_cache, "SOURCES", sources)
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    return cache


def answer(name="one"):
    return kernel_cache.load(name).answer()


def names(folder: Path) -> list[str]:
    return sorted(re.sub("-[0-9a-f]{24}", "", path.name) for path in folder.iterdir())


@pytest.mark.parametrize(
    ("name", "value", "status"),
    [
        ("WONDERLAND_NATIVE", "0", "switched off by WONDERLAND_NATIVE=0"),
        ("CXX", "no-such-compiler", "not built: there is no compiler no-such-compiler"),
        ("CXX", "false", "not built: false failed"),
    ],
)
def test_without_kernels_plain_torch_does_the_work(name, value, status, cache, monkeypatch, capsys):
    monkeypatch.setenv(name, value)
    assert native.status() == status
    assert not native.available()
    assert Mamba(4)(torch.ones(1, 3, 4)).isfinite().all()
    failed = "Compiling kernels for this machine, once: a few seconds for each that is used.\n" + (
        f"wonderland: The compiled kernel 'scan' is not in use: {status[11:]}. PyTorch computes the same more slowly. "
        "Install g++, or set WONDERLAND_NATIVE=0 to do without kernels.\n"
    )
    assert capsys.readouterr().err == ("" if name == "WONDERLAND_NATIVE" else f"wonderland: {failed}")


def test_a_kernel_is_built_once_and_kept_for_its_user_alone(small, capsys):
    assert answer() == 42
    (path,) = small.glob("*.so")
    built = path.stat().st_mtime_ns
    assert stat.S_IMODE(small.stat().st_mode) == 0o700
    assert names(small) == [".one.lock", "one.sha256", "one.so"]
    assert answer("two") == 42
    said = "wonderland: Compiling kernels for this machine, once: a few seconds for each that is used.\n"
    assert capsys.readouterr().err == said
    forget()
    assert answer() == 42
    assert path.stat().st_mtime_ns == built
    assert capsys.readouterr().err == ""
    assert os.listdir(tempfile.gettempdir()) == []


@pytest.mark.parametrize("damage", ["cut", "empty", "flipped", "missing", "no digest", "wrong digest"])
def test_a_damaged_kernel_is_built_again(small, damage):
    answer()
    (path,) = small.glob("*.so")
    whole, digest = path.read_bytes(), path.with_suffix(".sha256")
    forget()
    # Replaced, not written into: this process has the old file in its memory.
    path.unlink()
    content = {"cut": whole[:5000], "empty": b"", "flipped": whole[:-9] + b"?" + whole[-8:], "missing": None}
    if (content := content.get(damage, whole)) is not None:
        path.write_bytes(content)
    if damage == "no digest":
        digest.unlink()
    elif damage == "wrong digest":
        digest.write_bytes(b"0" * 64)
    assert answer() == 42
    assert kernel_cache._is_whole(path)


def test_what_killed_builds_left_is_removed(small):
    small.mkdir(parents=True, mode=0o700)
    (small / ".one.abc.part").mkdir()
    (small / ".one.abc.part" / "library.so").write_bytes(b"half")
    answer()
    assert names(small) == [".one.lock", "one.sha256", "one.so"]


def test_everything_is_on_disk_before_a_name_points_to_it(small, monkeypatch):
    done = []
    sync, replace = kernel_cache._sync, os.replace
    monkeypatch.setattr(kernel_cache, "_sync", lambda path: (done.append(("sync", Path(path).suffix)), sync(path)))
    monkeypatch.setattr(os, "replace", lambda a, b: (done.append(("rename", Path(b).suffix)), replace(a, b)))
    answer()
    assert done == [("sync", ".so"), ("sync", ""), ("rename", ".so"), ("rename", ".sha256"), ("sync", "")]


def test_six_threads_at_an_empty_cache(small):
    answers, together = [], threading.Barrier(6)

    def ask():
        together.wait()
        answers.append(answer())

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [42] * 6


def test_several_processes_at_an_empty_cache_build_once(small, tmp_path):
    counting = tmp_path / "compiler"
    counting.write_text(f'#!/bin/sh\necho built >> {tmp_path}/built\nexec g++ "$@"\n')
    counting.chmod(0o755)
    script = (
        "import sys, importlib.util as u\nfrom pathlib import Path\n"
        f"spec = u.spec_from_file_location('kernel_cache', {kernel_cache.__file__!r})\n"
        "module = u.module_from_spec(spec)\nspec.loader.exec_module(module)\n"
        f"module.SOURCES = Path({str(kernel_cache.SOURCES)!r})\nprint(module.load('one').answer())\n"
    )
    environment = {**os.environ, "CXX": str(counting)}
    started = [
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, env=environment, text=True)
        for _ in range(4)
    ]
    assert [process.communicate(timeout=60)[0] for process in started] == ["42\n"] * 4
    assert (tmp_path / "built").read_text() == "built\n"


def test_a_kernel_that_cannot_be_built_is_replaced_alone(small, capsys):
    assert answer() == 42
    forget()
    (kernel_cache.SOURCES / "two.cpp").write_text("this is not C++\n")
    capsys.readouterr()
    assert native.available("one")
    assert not native.available("two")
    assert native.status("two").startswith("not built: ")
    assert capsys.readouterr().err.count("\n") == 2  # what is compiled, and what failed
    with pytest.raises(kernel_cache.BuildError):
        answer("two")
    assert capsys.readouterr().err == ""
    assert names(small) == [".one.lock", ".two.lock", "one.sha256", "one.so"]


def test_without_a_compiler_kernels_in_the_cache_are_used_and_others_are_not(cache, monkeypatch):
    native.library("scan")
    forget()
    monkeypatch.setenv("PATH", "")
    assert native.available("scan")
    assert native.status("selective_scan") == "not built: there is no compiler g++"
    x = torch.randn(2, 5, 4, requires_grad=True)
    Mamba(4)(x).sum().backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()


def unsafe_file(small):
    small.parent.mkdir(parents=True)
    small.write_text("a file")
    return f"{small}: File exists"


def unsafe_mode(small):
    small.mkdir(parents=True)
    small.chmod(0o777)
    return f"others can write to {small}"


def unsafe_parent(small):
    small.mkdir(parents=True, mode=0o700)
    small.parent.chmod(0o777)
    return f"others can write to {small.parent}"


def unsafe_link(small):
    elsewhere = small.parent.parent.with_name("elsewhere")
    elsewhere.mkdir(mode=0o700)
    small.parent.mkdir(parents=True)
    small.symlink_to(elsewhere)
    return f"{small} is a link"


def unsafe_owner(small):
    if os.getuid():
        pytest.skip("only root can give a folder away")
    small.mkdir(parents=True, mode=0o700)
    os.chown(small, 12345, -1)
    return f"{small} belongs to another user"


def unsafe_grandparent(small):
    if os.getuid():
        pytest.skip("only root can give a folder away")
    small.mkdir(parents=True, mode=0o700)
    os.chown(small.parent.parent, 12345, -1)
    return f"{small.parent.parent} belongs to another user"


@pytest.mark.parametrize(
    "unsafe", [unsafe_file, unsafe_mode, unsafe_parent, unsafe_link, unsafe_owner, unsafe_grandparent]
)
def test_an_unsafe_cache_is_not_used_and_leaves_nothing_in_the_temporary_folder(small, unsafe, capsys):
    reason = unsafe(small)
    assert answer() == 42
    assert answer("two") == 42
    assert os.listdir(tempfile.gettempdir()) == []
    assert not small.is_dir() or os.listdir(small) == []
    assert capsys.readouterr().err == (
        f"wonderland: Compiled kernels cannot be kept ({reason}), so each process compiles them again. Set WONDERLAND_CACHE "
        "to a folder that only you can write to.\n"
        "wonderland: Compiling kernels for this machine, once: a few seconds for each that is used.\n"
    )


def test_who_can_write_to_a_folder(tmp_path, monkeypatch):
    tmp_path.chmod(0o1777)
    assert not kernel_cache._others_can_write(tmp_path.stat())  # sticky, as /tmp is
    tmp_path.chmod(0o777)
    assert kernel_cache._others_can_write(tmp_path.stat())
    tmp_path.chmod(0o775)
    for private in (True, False):
        monkeypatch.setattr(kernel_cache, "_is_private", lambda group, private=private: private)
        assert kernel_cache._others_can_write(tmp_path.stat()) == (not private)
