"""What a person does with the studio, in a real browser, at the widths of a phone and of a desktop."""

import io
import json
import shutil
import signal
import sys

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from tests import runs
from tests.ship.serving.test_openai import novel
from tests.ship.serving.test_process import ROOT, free_port
from tests.studio import folder

pytestmark = pytest.mark.slow
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
SIZES = {"phone": (390, 844), "desktop": (1280, 900)}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The address of a studio, and its folder of runs."""
    import subprocess
    import time
    import urllib.request

    root = folder.make(tmp_path_factory.mktemp("browser") / "runs")
    folder.many(root / "many", 12)
    shutil.copytree(novel().folder, root / "novel")
    port = free_port()
    words = [sys.executable, "-m", "wonderland", "studio", str(root), "--port", str(port)]
    process = subprocess.Popen(words, cwd=ROOT, stderr=subprocess.DEVNULL)
    for _ in range(600):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5).close()
            break
        except OSError:
            time.sleep(0.1)
    yield f"http://127.0.0.1:{port}/", root
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 0


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("no chromium is installed")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.fixture(params=SIZES)
def page(request, browser):
    """A page in which nothing may fail, and which asks no other server."""
    width, height = SIZES[request.param]
    context = browser.new_context(viewport={"width": width, "height": height})
    page = context.new_page()
    problems: list[str] = []
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "request",
        lambda asked: None if asked.url.startswith(("http://127.0.0.1:", "blob:")) else problems.append(asked.url),
    )
    page.set_default_timeout(60_000)
    yield page
    assert problems == []
    context.close()


def fits(page) -> bool:
    """Whether nothing is wider than the window."""
    return page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")


def test_the_best_run_is_found_and_compared(page, place):
    page.goto(place[0])
    page.get_by_label("Search").fill("many")
    page.get_by_label("Order").select_option("accuracy")
    names = page.locator("td.name a").all_inner_texts()
    best = json.loads((place[1] / "many" / names[0].removeprefix("many/") / "trust.json").read_text())
    assert len(names) == 12
    assert best["measured"]["test"]["metrics"]["accuracy"] == pytest.approx(0.5 + 0.4 * 11 / 12)
    for name in names[:2]:
        page.get_by_label(f"Compare {name}").check()
    page.get_by_role("button", name="Compare 2 runs").click()
    page.get_by_role("heading", name="Comparison of 2 runs").wait_for()
    row = page.get_by_role("row", name="accuracy")
    assert "(best)" in row.first.inner_text()
    assert page.locator("figure").count() >= 3
    assert fits(page)


def test_a_run_that_is_training_is_followed_to_its_end(page, place):
    live = place[1] / "live"
    page.goto(f"{place[0]}#/run/live")
    page.locator(".state.training").wait_for()
    source = runs.classifier().folder
    shutil.copy(source / "metrics.jsonl", live / "metrics.jsonl")
    page.locator("figure path.line").first.wait_for()
    for name in ("model.safetensors", "report.html", "trust.json"):
        shutil.copy(source / name, live / name)
    page.locator(".state.finished").wait_for()
    page.get_by_role("button", name="Predict", exact=True).wait_for()
    for name in ("model.safetensors", "report.html", "trust.json"):
        (live / name).unlink()
    lines = (source / "metrics.jsonl").read_text().splitlines(keepends=True)
    (live / "metrics.jsonl").write_text(lines[0])


def test_a_row_is_tried_with_the_keyboard_alone(page, place):
    page.goto(f"{place[0]}#/run/mixed")
    page.get_by_label("age", exact=True).focus()
    page.keyboard.type("71")
    page.keyboard.press("Tab")
    page.keyboard.type("25000")
    page.keyboard.press("Tab")
    page.keyboard.type("Rome")
    while page.evaluate("document.activeElement.textContent") != "Predict":
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.locator(".answer .big").wait_for()
    row = pd.DataFrame([{"age": 71.0, "income": 25000.0, "city": "Rome", "since": None}])
    expected = runs.classifier().predict(row).iloc[0]
    said = page.locator(".answer .big").inner_text()
    assert said == f"{expected['prediction']} ({100 * expected['probability']:.1f} %)"
    assert page.locator(".answer meter").count() == 2
    assert fits(page)


def test_an_image_is_tried(page, place):
    from sklearn.datasets import load_digits

    buffer = io.BytesIO()
    Image.fromarray((load_digits().images[0] * 15.9).astype(np.uint8)).save(buffer, "PNG")
    page.goto(f"{place[0]}#/run/digits")
    page.locator("input[type=file]").set_input_files(
        {"name": "zero.png", "mimeType": "image/png", "buffer": buffer.getvalue()}
    )
    page.get_by_alt_text("The file to predict").wait_for()
    page.get_by_role("button", name="Predict", exact=True).click()
    assert page.locator(".answer .big").inner_text().startswith("0 ")
    assert fits(page)


def test_a_text_is_continued(page, place):
    page.goto(f"{place[0]}#/run/novel")
    page.get_by_label("text to continue").fill("The cat")
    page.get_by_label("temperature").fill("0")
    page.get_by_label("most tokens").fill("12")
    page.get_by_role("button", name="Write on").click()
    expected = "The cat" + novel().ability("generate")("The cat", 12, temperature=0.0)
    page.wait_for_function("text => document.querySelector('pre[aria-label]').textContent === text", arg=expected)


def test_names_from_a_run_are_shown_as_text(page, place):
    page.goto(place[0])
    page.get_by_role("link", name="onerror").click()
    page.get_by_role("heading", name="Findings about the data").wait_for()
    assert page.locator("main img").count() == 0
    assert "owned" not in page.title().replace(folder.SCRIPT.replace("/", ""), "")
    page.goto(f"{place[0]}#/run/none")
    assert page.get_by_role("alert").inner_text().startswith("There is no run 'none' in ")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", SIZES)
def test_no_serious_violation_of_accessibility(browser, place, width, scheme):
    from axe_playwright_python.sync_playwright import Axe

    size = dict(zip(("width", "height"), SIZES[width], strict=True))
    context = browser.new_context(viewport=size, color_scheme=scheme, bypass_csp=True)
    page = context.new_page()
    page.set_default_timeout(60_000)
    for where in ("", "#/run/mixed", "#/run/digits", "#/run/novel", "#/compare/mixed,numbers%2Fdiabetes"):
        page.goto(place[0] + where)
        page.reload()
        page.locator("table.runs a" if not where else "figure").first.wait_for()
        if where.startswith("#/run"):
            page.get_by_role("button", name="Predict", exact=True).or_(
                page.get_by_role("button", name="Measure the text")
            ).wait_for()
        found = Axe().run(page).response["violations"]
        assert [(one["id"], one["impact"]) for one in found if one["impact"] in ("serious", "critical")] == []
        assert fits(page), where
        shown = page.locator("main").inner_text()
        assert not {"false", "null", "undefined", "NaN"} & set(shown.split())
    context.close()
