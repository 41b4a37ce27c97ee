import multiprocessing
import os
import resource
import subprocess
import sys

import pytest

from wonderland.core import WonderlandError, inside, lock, read_bytes, read_json, sha256, write_bytes, write_json


def test_write_replaces_whole_and_leaves_no_temporary_file(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, {"a": 1})
    write_json(path, {"a": 2})
    assert read_json(path) == {"a": 2}
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_failed_write_keeps_the_old_file(tmp_path):
    path = tmp_path / "a.json"
    write_json(path, {"a": 1})
    with pytest.raises(ValueError):
        write_json(path, {"a": float("nan")})
    with pytest.raises(TypeError):
        write_bytes(path, b"new", "not bytes")
    assert read_json(path) == {"a": 1}
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_full_disk_raises_a_clear_error_and_the_old_file_stays(tmp_path):
    script = (
        "import resource, signal, sys\n"
        "from wonderland.core import WonderlandError, write_bytes\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "path = sys.argv[1]\n"
        "write_bytes(path, b'old')\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try:\n    write_bytes(path, b'x' * 5000)\nexcept WonderlandError as error:\n    print(error)\n"
    )
    path = tmp_path / "file"
    done = subprocess.run([sys.executable, "-c", script, str(path)], capture_output=True, text=True, check=True)
    assert (
        done.stdout == f"No room left to write {path}. Free some space and try again; files saved before are intact.\n"
    )
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] != 1000


def test_reading_is_bounded_and_errors_name_the_cause(tmp_path):
    path = tmp_path / "a"
    with pytest.raises(WonderlandError, match="is missing"):
        read_bytes(path, 10)
    path.write_bytes(b"x" * 11)
    with pytest.raises(WonderlandError, match="is larger than 10 bytes, the limit for this kind of file"):
        read_bytes(path, 10)
    with pytest.raises(WonderlandError, match="is a folder, not a file"):
        read_bytes(tmp_path, 10)
    for text in (b"{", b"\xff", b"[" * 100_000):
        path.write_bytes(text)
        with pytest.raises(WonderlandError) as caught:
            read_json(path)
        assert str(caught.value) == f"{path} is not valid JSON: it is damaged or not ours."


@pytest.mark.parametrize("name", ["../x", "a/b", "..", "", "/etc/passwd", "a\\b", "a\0b"])
def test_names_that_leave_the_folder_are_refused(tmp_path, name):
    with pytest.raises(WonderlandError, match="is not a plain file name"):
        inside(tmp_path, name)


def test_links_that_leave_the_folder_are_refused(tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "secret").write_text("s")
    (tmp_path / "run" / "config.json").symlink_to(tmp_path / "secret")
    with pytest.raises(WonderlandError, match="is a link that leads out of its folder"):
        inside(tmp_path / "run", "config.json")


def _try_lock(folder, queue):
    try:
        with lock(folder):
            queue.put("held")
    except WonderlandError as error:
        queue.put(str(error))


def test_only_one_process_can_hold_a_lock(tmp_path):
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    with lock(tmp_path):
        other = context.Process(target=_try_lock, args=(tmp_path, queue))
        other.start()
        assert (
            queue.get(timeout=60) == f"{tmp_path} is in use by another process. Wait for it, or choose another folder."
        )
        other.join()
    with lock(tmp_path):
        pass


def test_what_a_killed_process_left_half_written_goes_when_its_folder_is_locked(tmp_path):
    dead = subprocess.Popen(["true"])
    dead.wait()
    (tmp_path / f".a.json.{dead.pid}.part").write_bytes(b"{")
    (tmp_path / f".b.json.{os.getppid()}.part").write_bytes(b"{")
    with lock(tmp_path):
        assert sorted(path.name for path in tmp_path.glob(".*.part")) == [f".b.json.{os.getppid()}.part"]


def test_sha256_of_bytes_and_files(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    assert (
        sha256(b"abc") == sha256(tmp_path / "a") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    )


def test_a_lock_that_is_lost_stops_all_writing(tmp_path):
    (tmp_path / "checkpoint").mkdir()
    with lock(tmp_path):
        write_bytes(tmp_path / "a", b"1")
        (tmp_path / ".lock").unlink()
        for place in (tmp_path / "a", tmp_path / "checkpoint" / "b"):
            with pytest.raises(WonderlandError) as caught:
                write_bytes(place, b"2")
            assert str(caught.value) == (
                f"The lock file of {tmp_path} was removed, so another process may be writing there. Nothing more is written; "
                "see that no other process runs, and continue with --resume."
            )
    assert (tmp_path / "a").read_bytes() == b"1"
    write_bytes(tmp_path / "a", b"3")


def test_pipes_and_link_loops_are_refused_without_blocking(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(WonderlandError) as caught:
        read_bytes(tmp_path / "pipe", 10)
    assert str(caught.value) == f"{tmp_path / 'pipe'} is a pipe or a device, not a file."
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(WonderlandError):
        read_bytes(tmp_path / "loop", 10)


def test_names_that_no_file_system_takes_are_refused(tmp_path):
    for name in ("x" * 300, "\ud800" * 90, "é" * 130):
        with pytest.raises(WonderlandError, match="is not a plain file name, so it is not read from"):
            inside(tmp_path, name)


def test_paths_that_cannot_be_written_raise_clear_errors(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(WonderlandError) as caught:
        write_bytes(tmp_path / "folder.csv", b"x")
    assert str(caught.value) == f"{tmp_path / 'folder.csv'} cannot be written: it is a folder. Choose another name."
    with pytest.raises(WonderlandError, match="cannot be written"):
        write_bytes(tmp_path / "none" / "x", b"x")
