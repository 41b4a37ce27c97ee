"""A server as a process: it starts, answers, and stops without losing a request."""

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from tests import runs
from tests.ship.serving.application import GOOD
from wonderland.cli.main import main

ROOT = Path(__file__).parents[3]


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def get(url: str, content: bytes | None = None) -> dict:
    """The JSON at an address."""
    request = urllib.request.Request(url, content, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def started(words: list, port: int, **options) -> subprocess.Popen:
    """A process, once its server answers."""
    process = subprocess.Popen([*map(str, words), "--port", str(port)], stderr=subprocess.DEVNULL, **options)
    for _ in range(600):
        try:
            assert get(f"http://127.0.0.1:{port}/health")["status"] == "ready"
            return process
        except OSError:
            assert process.poll() is None, "the server has stopped"
            time.sleep(0.1)
    raise TimeoutError


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nowhere"], "There is no run in nowhere: the folder does not exist."),
        (["x", "--port", "70000"], "--port is a number from 0 to 65535, not 70000."),
        (["x", "--max-body", "0"], "--max-body is a number above 0 and at most 1,024, not 0."),
        (["x", "--rate", "-1"], "--rate is a number from 0 to 1,000,000, not -1."),
    ],
)
def test_wrong_options_end_in_a_sentence(capsys, words, sentence):
    assert main(["serve", *words]) == 2
    assert capsys.readouterr().err == f"wonderland: {sentence}\n"


def test_a_port_in_use_is_named(capsys):
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        port = sock.getsockname()[1]
        assert main(["serve", str(runs.classifier().folder), "--port", str(port)]) == 2
    assert "Choose another with --port." in capsys.readouterr().err


async def load(port: int, stop: asyncio.Event, counts: dict[str, int]) -> None:
    """One client that asks again and again, and counts what happens to each request."""
    body = json.dumps({"rows": [GOOD]}).encode()
    head = f"POST /predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    while not stop.is_set():
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            return  # the server is gone
        closing = False
        while not closing:
            try:
                writer.write(head.encode() + body)
                answer = (await reader.readuntil(b"\r\n\r\n")).lower()
                await reader.readexactly(int(answer.split(b"content-length: ")[1].split(b"\r\n")[0]))
            except (OSError, asyncio.IncompleteReadError):
                counts["lost"] += 1
                break
            counts["answered" if answer.startswith(b"http/1.1 200") else "failed"] += 1
            closing = b"connection: close" in answer
        writer.close()


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_sigterm_under_load_loses_no_request(workers):
    port = free_port()
    words = [sys.executable, "-m", "wonderland", "serve", runs.classifier().folder, "--workers", workers]
    process = started(words, port, cwd=ROOT)
    counts = {"answered": 0, "failed": 0, "lost": 0}

    async def session():
        stop = asyncio.Event()
        clients = [asyncio.create_task(load(port, stop, counts)) for _ in range(32)]
        await asyncio.sleep(2)
        process.send_signal(signal.SIGTERM)
        await asyncio.wait(clients, timeout=30)

    asyncio.run(session())
    assert process.wait(30) == 0
    assert counts["answered"] > 100
    assert (counts["failed"], counts["lost"]) == (0, 0)


@pytest.mark.slow
def test_a_worker_that_dies_is_started_again():
    port = free_port()
    words = [sys.executable, "-m", "wonderland", "serve", runs.classifier().folder, "--workers", "2"]
    process = started(words, port, cwd=ROOT)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    before = children.read_text().split()
    os.kill(int(before[0]), signal.SIGKILL)
    for _ in range(300):
        time.sleep(0.1)
        now = children.read_text().split()
        if len(now) == 2 and now != before:
            break
    assert len(now) == 2
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 0


@pytest.mark.slow
def test_the_wheel_serves_a_copied_run_in_a_fresh_environment(tmp_path):
    """Only the built wheel and the extra `serve` are installed, and nothing of the checkout is seen."""
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w", tmp_path, ROOT], check=True, timeout=600
    )
    (wheel,) = tmp_path.glob("*.whl")
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    limits = {**os.environ, "PIP_CONSTRAINT": str(ROOT / "constraints.txt")}
    subprocess.run([python, "-m", "pip", "install", "--quiet", f"{wheel}[serve]"], check=True, env=limits, timeout=1800)
    shutil.copytree(runs.classifier().folder, tmp_path / "copied")
    port = free_port()
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    process = started([python.parent / "wonderland", "serve", "copied"], port, cwd=tmp_path, env=clean)
    try:
        found = get(f"http://127.0.0.1:{port}/predict", json.dumps({"rows": [GOOD]}).encode())
        assert found["predictions"][0]["prediction"] in ("high", "low")
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
