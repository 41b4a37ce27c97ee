"""The server beside a plain FastAPI route that predicts one request at a time, under wrk on this machine.

python -m bench.serving RUN [SECONDS]    # a run of a table; needs wrk

Both answer the same rows, which is checked first; they are asked in turns. Requests a second depend on who else uses the
machine, so the processor time of the server for each request is printed beside them.
"""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import pandas as pd

from wonderland.ship import load
from wonderland.ship.predictor import Predictor

CONNECTIONS = 64
ROUNDS = 2


def plain(folder: str, port: int) -> None:
    """The server that one writes in a few lines: a route, a frame of one row, a prediction."""
    import torch
    import uvicorn
    from fastapi import FastAPI

    torch.set_num_threads(1)
    run, app = load(folder), FastAPI()

    @app.post("/predict")
    def predict(body: dict[str, Any]) -> dict[str, Any]:
        table = run.predict(pd.DataFrame(body["rows"]))
        return {"predictions": table.to_dict("records")}

    uvicorn.run(app, port=port, log_level="error", access_log=False)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def start(words: list[str], port: int, body: bytes) -> tuple[subprocess.Popen, Any]:
    """A server, and its answer to one request."""
    process = subprocess.Popen([sys.executable, "-m", *words], env={**os.environ, "OMP_NUM_THREADS": "1"})
    for _ in range(1200):
        try:
            request = urllib.request.Request(
                f"http://127.0.0.1:{port}/predict", body, {"content-type": "application/json"}
            )
            with urllib.request.urlopen(request, timeout=30) as answer:
                return process, json.load(answer)
        except OSError:
            time.sleep(0.1)
    raise TimeoutError


def processor_seconds(pid: int) -> float:
    """What a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wrk(port: int, pid: int, script: str, seconds: int, connections: int) -> dict[str, Any]:
    """One measurement."""
    before = processor_seconds(pid)
    words = [
        "wrk",
        "-t1",
        f"-c{connections}",
        f"-d{seconds}s",
        "--latency",
        "-s",
        script,
        f"http://127.0.0.1:{port}/predict",
    ]
    text = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    requests = int(re.findall(r"(\d+) requests in", text)[0])
    return {
        "requests a second": float(re.findall(r"Requests/sec: +([\d.]+)", text)[0]),
        "CPU us a request": 1e6 * (processor_seconds(pid) - before) / max(1, requests),
        "p99": re.findall(r"99% +(\S+)", text)[0],
        "errors": re.findall(r"Socket errors.*|Non-2xx.*", text) or "none",
    }


def main(folder: str, seconds: int) -> None:
    """Check both, then measure them in turns."""
    predictor = Predictor(load(folder))
    samples = [
        {
            field.name: field.levels[0] if field.levels else 1.0 if field.kind == "number" else None
            for field in predictor.fields
        }
    ]
    body = json.dumps({"rows": samples}).encode()
    own, other = free_port(), free_port()
    served, first = start(["wonderland", "serve", folder, "--port", str(own)], own, body)
    rival, second = start(["bench.serving", "--plain", folder, str(other)], other, body)
    try:
        mine, theirs = first["predictions"][0], second["predictions"][0]
        for name in ("probability", "low", "high"):
            assert name not in mine or abs(mine[name] - theirs[name]) < 1e-5
        assert mine["prediction"] == theirs["prediction"] or abs(mine["prediction"] - theirs["prediction"]) < 1e-5
        with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
            script.write(
                f'wrk.method="POST"\nwrk.headers["Content-Type"]="application/json"\nwrk.body=[==[{body.decode()}]==]\n'
            )
            script.flush()
            for _ in range(ROUNDS):
                print("wonderland", wrk(own, served.pid, script.name, seconds, CONNECTIONS), flush=True)
                print("plain     ", wrk(other, rival.pid, script.name, seconds, CONNECTIONS), flush=True)
            print("wonderland, half the connections", wrk(own, served.pid, script.name, seconds, CONNECTIONS // 2))
        print("load of the machine:", os.getloadavg())
    finally:
        for process in (served, rival):
            process.send_signal(signal.SIGTERM)
            process.wait(60)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--plain"]:
        plain(sys.argv[2], int(sys.argv[3]))
    else:
        main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 20)
