"""Two hosts run one study: network namespaces with disks of their own, a PostgreSQL server between them, and random kills."""

import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.runs import mixed
from tests.search.servers import postgresql
from wonderland.search import Study, open_database

ROOT = Path(__file__).resolve().parents[2]


def sh(*words):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise OSError(done.stderr.strip() or f"{words[0]} failed")


@contextmanager
def host(number, folder):
    """A network namespace that reaches this one at 10.213.NUMBER.1, and its folder."""
    name, near, far = f"wonderland{number}", f"wl{number}a", f"wl{number}b"
    with ExitStack() as stack:
        sh("ip", "netns", "add", name)
        stack.callback(sh, "ip", "netns", "delete", name)
        sh("ip", "link", "add", near, "type", "veth", "peer", "name", far, "netns", name)
        sh("ip", "address", "add", f"10.213.{number}.1/24", "dev", near)
        sh("ip", "link", "set", near, "up")
        sh("ip", "-n", name, "address", "add", f"10.213.{number}.2/24", "dev", far)
        sh("ip", "-n", name, "link", "set", far, "up")
        (folder / "disk").mkdir(parents=True)
        yield name


@pytest.fixture
def hosts():
    if os.getuid() != 0 or not shutil.which("ip") or not shutil.which("unshare"):
        pytest.skip("network namespaces need root, ip and unshare")
    try:
        sh("unshare", "--net", "--mount", "true")
    except OSError as error:
        pytest.skip(f"network namespaces are not allowed here: {error}")
    folder = Path(tempfile.mkdtemp(prefix="wonderland-hosts-"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        yield folder, [stack.enter_context(host(number, folder / f"host{number}")) for number in (1, 2)]


def worker(folder, names, number, words):
    """The same command on a host, which sees its own disk at `folder/disk` and an empty folder where that of the other is."""
    here, other = folder / f"host{number}" / "disk", folder / f"host{3 - number}"
    script = 'mount --bind "$0" "$1" && mount -t tmpfs none "$2" && cd "$1" && shift 2 && exec "$@"'
    (folder / "disk").mkdir(exist_ok=True)
    with (folder / f"said{number}.txt").open("ab") as said:
        return subprocess.Popen(
        ["ip", "netns", "exec", names[number - 1], "unshare", "-m", "sh", "-c", script, here, folder / "disk", other,
         *words],
        env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}, stdout=subprocess.DEVNULL,
        stderr=said,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("shared", [False, True])
def test_two_hosts_with_disks_of_their_own_run_one_study(hosts, shared):
    pytest.importorskip("psycopg", reason="needs the extra search")
    folder, names = hosts
    mixed(150).to_csv(folder / "table.csv", index=False)
    (folder / "shared").mkdir()
    trials, draw, kills = 8, random.Random(5), 0
    with postgresql("*") as server:
        workers, ended = {}, set()

        def start(number):
            words = [sys.executable, "-m", "wonderland", "search", folder / "table.csv", "--target", "risk", "--trials", trials,
                     "--tuner", "asha", "--rungs", 2, "--eta", 2, "--steps", 240, "--leaderboard", "none",
                     "--study", server.url(f"10.213.{number}.1")]  # fmt: skip
            words += ["--shared", folder / "shared"] if shared else []
            workers[number] = worker(folder, names, number, [str(word) for word in words])

        for number in (1, 2):
            start(number)
        until = time.monotonic() + draw.uniform(4, 10)
        while len(ended) < 2:
            time.sleep(0.2)
            for number in {1, 2} - ended:
                code = workers[number].poll()
                if code is not None:
                    assert code == 0, (folder / f"said{number}.txt").read_text()
                    ended.add(number)
            alive = sorted({1, 2} - ended)
            if time.monotonic() > until and kills < 5 and alive:
                number = draw.choice(alive)
                workers[number].kill()
                workers[number].wait()
                kills += 1
                start(number)
                until = time.monotonic() + draw.uniform(4, 10)
        journal = open_database(server.url(), "table.csv")
        study = Study.open(folder / "look", journal)
        assert kills >= 2
        assert study.finished
        measured = [(entry["trial"], entry["rung"]) for entry in journal.entries if entry["entry"] == "measured"]
        assert len(measured) == len(set(measured))
        assert {trial for trial, rung in measured if rung == 0} == set(range(trials))
        assert [trial.settings for trial in study.trials] == [study.space.sample(0, n) for n in range(trials)]
        assert any(rung == 1 for _, rung in measured)
        assert not [trial.failed for trial in study.trials if trial.failed]
        assert len({trial.place for trial in study.trials}) == 2
        winners = list(folder.glob("host*/disk/studies/*/winner/report.html"))
        assert winners
        assert shared == any((folder / "shared").rglob("checkpoint"))
