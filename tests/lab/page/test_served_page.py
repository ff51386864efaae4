"""The served page in a real Chromium: login, every view, the keyboard, and accessibility."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pytest

from generator.rpc.status_errors import CallFailure, FailureKind
from tests.generator.rpc.credentials import Pki, Tokens
from tests.generator.web.sites import outcome_of, serving, tree_of
from tests.lab.page.browser import Browser, chromium
from tests.lab.page.scene import GANGS, NUM_LOST, PageScene

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("page")]

AXE: Final = Path(__file__).parent / "axe" / "axe.min.js"
VIEWS: Final = ("fabric", "findings", "jobs", "changes")
HOSTILE: Final = "</script><img src=x onerror=document.title='owned'>"
SERIOUS: Final = """axe.run(document, {resultTypes: ["violations"]}).then((found) =>
    found.violations.filter((one) => ["serious", "critical"].includes(one.impact)).map((one) =>
        `${one.id}: ${one.nodes.map((node) => node.html + node.failureSummary).join("; ")}`))
"""


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> PageScene:
    return PageScene(tmp_path_factory.mktemp("page") / "scene")


@pytest.fixture(scope="module")
def address(scene: PageScene) -> Iterator[str]:
    """The page without authentication."""
    with scene.serve() as found:
        yield found


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    folder = tmp_path_factory.mktemp("chromium")
    with chromium(folder, "--ignore-certificate-errors") as browser:
        yield browser


@pytest.fixture
def browser(started: Browser) -> Iterator[Browser]:
    """A tab in which no page may log an error, as a violation of its policy is."""
    started.leave()
    started.problems.clear()
    yield started
    assert started.problems == []


def text_of(browser: Browser, selector: str) -> str:
    return str(browser.run(f"document.querySelector({json.dumps(selector)}).innerText"))


def count_colored(browser: Browser, color: str, picture: str = "picture") -> int:
    """Return how many pixels of the picture have a color, such as #0a56b0."""
    script = """(() => {
        const canvas = document.getElementById("PICTURE");
        const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        const wanted = COLOR;
        let found = 0;
        for (let at = 0; at < pixels.length; at += 4)
            if (wanted.every((value, part) => pixels[at + part] === value)) found += 1;
        return found;
    })()"""
    rgb = [int(color[at : at + 2], 16) for at in (1, 3, 5)]
    return int(browser.run(script.replace("COLOR", json.dumps(rgb)).replace("PICTURE", picture)))


def test_the_login_opens_the_page_and_the_logout_closes_it(
    scene: PageScene, browser: Browser, tmp_path: Path
) -> None:
    pki = Pki(tmp_path)
    bob = CallFailure(FailureKind.FORBIDDEN, "bob may not create placements.toponaut.io")
    with scene.serve(tls=pki.files, tokens=Tokens({"alice": None, "bob": bob})) as address:
        browser.open(address, ready="document.activeElement.id === 'token'")
        browser.type_text("bob")
        browser.press("Enter")
        browser.wait_for("document.querySelector('[role=alert]').textContent")
        assert "bob may not create" in text_of(browser, "[role=alert]")
        browser.problems.clear()  # Chromium logs the status 401 of the refused form
        browser.focus_by_tab("#token")
        browser.type_text("alice")
        browser.press("Enter")
        browser.wait_for("document.body.dataset.readyMs")
        assert "alice" not in browser.run("document.cookie + location.href")
        browser.focus_by_tab("form[action=logout] button")
        browser.press("Enter")
        browser.wait_for("document.querySelector('#token')")
        browser.open(address, ready="document.querySelector('#token')")


def test_the_fabric_shows_the_exchange_of_the_swapped_pair(
    address: str, scene: PageScene, browser: Browser
) -> None:
    browser.open(f"{address}#view=fabric&device={scene.swapped[0]}")
    assert f"host {scene.swapped[0]}" in text_of(browser, "#selected")
    assert "swapped" in text_of(browser, "#selected")
    assert count_colored(browser, "#1a7f37") > 0, "the exchange is drawn in its color"


def test_the_findings_name_the_plugs_and_the_ones_that_are_new(
    address: str, browser: Browser
) -> None:
    browser.open(f"{address}#view=findings&kind=swapped-cable")
    assert "Exchange the plugs at" in text_of(browser, "#rows")
    browser.open(f"{address}#view=findings&since=2026-11-02&age=new&kind=swapped-cable")
    assert "Exchange the plugs at" in text_of(browser, "#rows")
    browser.open(f"{address}#view=findings&since=2026-11-03&age=new")
    assert browser.run("document.getElementById('rows').rows.length") == 0


def test_the_jobs_show_gangs_free_slots_and_what_a_gang_gets(
    address: str, browser: Browser
) -> None:
    browser.open(f"{address}#view=jobs&size=64")
    for gang in GANGS:
        assert gang in text_of(browser, "#gangs")
    assert "1 outside of the tree" in text_of(browser, "#gangs")
    assert "gets nodes within one leaf" in text_of(browser, "#wanted")
    assert re.match(r"\d+ slots of 64 nvidia.com/gpu are left", text_of(browser, "#slots"))
    browser.open(f"{address}#view=jobs&size=256")
    assert "does not fit: no-fit, tier core, 31 of 32 pods fit" in text_of(browser, "#wanted")
    assert "infeasible: core-01-16: 31 of" in text_of(browser, "#wanted")


def test_a_gang_is_marked_in_the_picture(address: str, browser: Browser) -> None:
    browser.open(f"{address}#view=fabric")
    assert count_colored(browser, "#0a56b0") == 0
    browser.open(f"{address}#view=jobs")
    browser.focus_by_tab("#gangs a")
    browser.press("Enter")
    browser.wait_for("!document.getElementById('fabric').hidden")
    assert count_colored(browser, "#0a56b0") > 100
    assert "Gang ml/eval" in text_of(browser, "#selected")


def test_the_changes_show_the_held_plan_and_its_command(
    address: str, scene: PageScene, browser: Browser
) -> None:
    held = scene.outcomes[-1].held
    assert held
    browser.open(f"{address}#view=changes")
    text = text_of(browser, "#held")
    assert f"{NUM_LOST} nodes would leave a domain" in text
    assert f"toponaut approve --kube {held.hash}" in text
    assert re.search(rf"node\t{scene.hosts[-1]}\tleaf-\S+\tunplaced", text)
    drawn = browser.run("document.getElementById('held-picture').ariaLabel")
    assert re.search(r"The held plan: \d+ nodes from leaf-\S+ to no drawn domain", drawn)
    assert count_colored(browser, "#cf222e", "held-picture") > 0, "nodes that leave are drawn"
    browser.focus_by_tab("#steps summary")
    browser.press("Enter")
    browser.wait_for("document.querySelector('#steps details').open")
    assert scene.hosts[-1] in text_of(browser, "#steps")


def test_every_view_is_reached_by_keyboard(address: str, browser: Browser) -> None:
    browser.open(address)
    for view in VIEWS:
        browser.focus_by_tab(f"#to-{view}")
        browser.press("Enter")
        browser.wait_for(f"!document.getElementById('{view}').hidden")
        assert browser.run("document.title") == f"Toponaut: {view}"
    browser.focus_by_tab("#to-fabric")
    browser.press("Enter")
    browser.focus_by_tab("#picture")
    before = browser.run("location.hash")
    browser.press("+", "ArrowRight")
    assert browser.run("location.hash") != before
    browser.press("0")
    assert "at=" not in browser.run("location.hash")


def test_the_search_is_used_by_keyboard(address: str, scene: PageScene, browser: Browser) -> None:
    browser.open(address)
    browser.focus_by_tab("#name")
    browser.type_text(scene.hosts[7])
    browser.press("Enter")
    browser.wait_for(f"document.getElementById('selected').innerText.includes('{scene.hosts[7]}')")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", [*VIEWS, "login"])
def test_no_view_has_a_serious_violation(
    view: str, scheme: str, address: str, browser: Browser, scene: PageScene, tmp_path: Path
) -> None:
    browser.set_colors(scheme)
    try:
        if view == "login":
            with scene.serve(tls=Pki(tmp_path).files, tokens=Tokens({})) as guarded:
                browser.open(guarded, ready="document.getElementById('token')")
                assert find_violations(browser) == []
        else:
            browser.open(f"{address}#view={view}")
            assert find_violations(browser) == []
    finally:
        browser.set_colors("light")


def find_violations(browser: Browser) -> Any:  # noqa: ANN401 - a list of texts
    browser.run(AXE.read_text(encoding="utf-8") + ";0")
    return browser.run(SERIOUS)


def test_axe_finds_what_is_wrong_on_purpose(address: str, browser: Browser) -> None:
    browser.open(f"{address}#view=jobs")
    browser.run("document.querySelector('label[for=size]').remove()")
    assert any(row.startswith("label:") for row in find_violations(browser))


def test_axe_is_the_file_that_its_source_names() -> None:
    named = re.search(r"`([0-9a-f]{64})`", (AXE.parent / "SOURCE.md").read_text())
    assert named
    assert sha256(AXE.read_bytes()).hexdigest() == named[1]


@pytest.mark.parametrize("view", VIEWS)
def test_hostile_names_are_text_in_every_view(view: str, browser: Browser) -> None:
    with serving() as site:
        site.show(outcome_of(tree_of(HOSTILE, "node-2", leaf=HOSTILE), HOSTILE))
        browser.open(f"http://{site.port.address}/#view={view}")
        assert browser.run("document.images.length") == 0
        assert browser.run("document.title") == f"Toponaut: {view}"
        if view == "findings":
            assert HOSTILE in text_of(browser, "#rows")


def test_before_the_first_tree_the_page_says_so(browser: Browser) -> None:
    with serving() as site:
        browser.open(f"http://{site.port.address}/", ready="document.body.dataset.failed")
        browser.wait_for("document.getElementById('status').innerText.includes('no tree is known')")
    browser.problems.clear()  # Chromium logs the status 503 and the error that stops the page
