"""The served page in a real Chromium: login, every view, the keyboard, and accessibility."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import pytest

from generator.cli.silence_file import read_silences
from generator.rpc.status_errors import CallFailure, FailureKind
from tests.generator.rpc.credentials import Pki, Tokens
from tests.generator.web.sites import outcome_of, serving, tree_of
from tests.lab.page.browser import Browser, chromium
from tests.lab.page.scene import GANGS, NUM_LOST, PageScene

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("page")]

AXE: Final = Path(__file__).parent / "axe" / "axe.min.js"
VIEWS: Final = ("fabric", "findings", "jobs", "changes")
PLACES: Final = ("", "&device=node-0046", "&domain=leaf-p03-g06-r1-4", "&domain=core-01-16")
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


def count_colored(browser: Browser, token: str, chart: str) -> int:
    """Return how many pixels of a chart have the color of a token of the page."""
    script = """(() => {
        let found = 0;
        const count = (canvas, wanted) => {
            const context = canvas.getContext("2d");
            const { data } = context.getImageData(0, 0, canvas.width, canvas.height);
            for (let at = 0; at < data.length; at += 4)
                if (wanted.every((value, part) => data[at + part] === value)) found += 1;
        };
        const style = getComputedStyle(document.documentElement).getPropertyValue("--" + TOKEN);
        const sample = new OffscreenCanvas(1, 1).getContext("2d");
        sample.fillStyle = style.trim();
        sample.fillRect(0, 0, 1, 1);
        const wanted = [...sample.getImageData(0, 0, 1, 1).data.slice(0, 3)];
        for (const canvas of document.querySelectorAll(CHART + " canvas")) count(canvas, wanted);
        return found;
    })()"""
    filled = script.replace("CHART", json.dumps(chart)).replace("TOKEN", json.dumps(token))
    browser.wait_for(f"document.querySelector('{chart} canvas')")
    browser.run("new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))")
    return int(browser.run(filled))


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


def test_the_overview_says_how_the_fabric_is_and_what_to_fix_first(
    address: str, scene: PageScene, browser: Browser
) -> None:
    browser.open(f"{address}#view=fabric")
    tiles = text_of(browser, "#tiles")
    assert f"{len(scene.hosts) - NUM_LOST} of {len(scene.hosts)}" in tiles
    assert f"{NUM_LOST} nodes\na plan waits for approval" in tiles
    assert browser.run("document.querySelectorAll('#first li').length") == 5
    assert count_colored(browser, "warning", "#partition") > 0, "hosts with faults are drawn"
    browser.run("document.querySelector('#first a').click()")
    browser.wait_for("document.querySelector('#chosen-finding .finding')")


def test_a_swapped_pair_is_drawn_as_the_cables_that_cross(
    address: str, scene: PageScene, browser: Browser
) -> None:
    browser.open(f"{address}#view=fabric&device={scene.swapped[0]}")
    assert text_of(browser, "#device h2") == f"host {scene.swapped[0]}"
    assert "swapped" in text_of(browser, "#device .tabulator-row"), "the bad port is the first"
    drawn = browser.run("document.querySelector('.exchange').textContent")
    assert all(name in drawn for name in scene.swapped)
    assert browser.run("document.querySelectorAll('.exchange .today').length") == 2
    assert count_colored(browser, "swapped", ".grid-chart") > 0


def test_the_findings_name_the_plugs_and_the_ones_that_are_new(
    address: str, browser: Browser
) -> None:
    browser.open(f"{address}#view=findings&kind=swapped-cable")
    assert "exchange the plugs" in text_of(browser, "#findings-table")
    browser.open(f"{address}#view=findings&since=2026-11-02&age=new&kind=swapped-cable")
    assert "exchange the plugs" in text_of(browser, "#findings-table")
    browser.open(f"{address}#view=findings&since=2026-11-03&age=new")
    assert "No finding matches." in text_of(browser, "#findings-table")


def test_a_chip_keeps_the_rows_of_its_kind(address: str, browser: Browser) -> None:
    browser.open(f"{address}#view=findings")
    browser.focus_by_tab("[data-value=swapped-cable]")
    browser.press("Enter")
    browser.wait_for("location.hash.includes('kind=swapped-cable')")
    cells = "[...document.querySelectorAll('#findings-table .tabulator-cell')]"
    kinds = browser.run(
        f"{cells}.filter((one) => one.getAttribute('tabulator-field') === 'kind')"
        ".map((one) => one.innerText)"
    )
    assert set(kinds) == {"swapped-cable"}
    assert browser.run("document.activeElement.dataset.value") == "swapped-cable"


def test_a_finding_is_set_aside_by_a_line_that_the_page_shows(
    address: str, browser: Browser, tmp_path: Path
) -> None:
    browser.open(f"{address}#view=findings&finding=0")
    browser.run("document.querySelector('#chosen-finding details').open = true")
    line = text_of(browser, "#chosen-finding pre")
    silences = tmp_path / "silences.yaml"
    silences.write_text(line.replace('until: "…"', "until: 2099-01-01"))
    assert len(read_silences(silences)) == 1


def test_the_jobs_show_gangs_room_for_more_and_what_a_gang_gets(
    address: str, browser: Browser
) -> None:
    browser.open(f"{address}#view=jobs&size=64")
    for gang in GANGS:
        assert gang in text_of(browser, "#gangs")
    assert "1 outside of the tree" in text_of(browser, "#gangs")
    assert "gets nodes within one leaf" in text_of(browser, "#wanted")
    assert re.match(r"\d+ gangs of 64 nvidia.com/gpu still fit", text_of(browser, "#room"))
    browser.open(f"{address}#view=jobs&size=256")
    assert "does not fit: no-fit, tier core, 31 of 32 pods fit" in text_of(browser, "#wanted")
    assert "infeasible: core-01-16: 31 of" in text_of(browser, "#wanted")


def test_a_gang_is_marked_in_the_partition_and_its_ring_is_drawn(
    address: str, browser: Browser
) -> None:
    browser.open(f"{address}#view=jobs")
    assert count_colored(browser, "accent", "#job-partition") == 0
    browser.wait_for(f"document.querySelectorAll('#gangs a').length === {len(GANGS)}")
    browser.focus_by_tab("#gangs a")
    href = browser.run("document.activeElement.getAttribute('href')")
    browser.run("dispatchEvent(new Event('hashchange'))")  # draws anew, as a new tree does
    browser.wait_for(f"document.activeElement.getAttribute('href') === {json.dumps(href)}")
    browser.press("Enter")
    browser.wait_for("document.getElementById('gang')")
    assert count_colored(browser, "accent", "#job-partition") > 100
    browser.open(f"{address}#view=jobs&gang=ml/llm-pretrain")
    assert "ml/llm-pretrain" in text_of(browser, "#gang h2")
    drawn = browser.run("document.querySelector('.ring').getAttribute('aria-label')")
    assert drawn == "As ranked: leaves a leaf 16 times; Best order: leaves a leaf 2 times"
    assert "a leaf 16 times (fewest 2)" in text_of(browser, "#gang")


def test_the_changes_show_the_held_plan_and_its_command(
    address: str, scene: PageScene, browser: Browser
) -> None:
    held = scene.outcomes[-1].held
    assert held
    browser.open(f"{address}#view=changes")
    text = text_of(browser, "#held")
    assert f"{NUM_LOST} nodes would leave a domain" in text
    assert f"toponaut approve --kube {held.hash}" in text
    drawn = browser.run("document.getElementById('held-picture').ariaLabel")
    assert re.search(r"The held plan: \d+ nodes from leaf-\S+ to elsewhere", drawn)
    moved = next(name for part, name, *_ in read_held(browser) if part == "node")
    assert moved in text
    browser.focus_by_tab("#timeline")
    assert "Generation 2" in text_of(browser, "#steps h3")
    browser.press("ArrowLeft")
    browser.wait_for("document.querySelector('#steps h3').innerText.includes('Generation 1')")


def read_held(browser: Browser) -> Any:  # noqa: ANN401 - the changes of the document
    return browser.run(
        "fetch('document.json').then((a) => a.json()).then((d) => d.changes.held.changes)"
    )


def test_every_view_is_reached_by_keyboard(address: str, browser: Browser) -> None:
    browser.open(address)
    for view in VIEWS:
        browser.focus_by_tab(f"#to-{view}")
        browser.press("Enter")
        browser.wait_for(f"!document.getElementById('{view}').hidden")
        assert browser.run("document.title") == f"Toponaut: {view}"


def test_the_search_is_used_by_keyboard(address: str, scene: PageScene, browser: Browser) -> None:
    browser.open(address)
    browser.focus_by_tab("#name")
    browser.type_text(scene.hosts[7])
    browser.press("Enter")
    browser.wait_for(f"document.querySelector('#device h2')?.innerText === 'host {scene.hosts[7]}'")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", [*VIEWS, *(f"fabric{place}" for place in PLACES), "login"])
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
            assert HOSTILE in text_of(browser, "#findings")


def test_before_the_first_tree_the_page_says_so(browser: Browser) -> None:
    with serving() as site:
        browser.open(f"http://{site.port.address}/", ready="document.body.dataset.failed")
        browser.wait_for("document.getElementById('status').innerText.includes('no tree is known')")
    browser.problems.clear()  # Chromium logs the status 503 and the error that stops the page


@pytest.mark.parametrize("view", [*VIEWS, *(f"fabric{place}" for place in PLACES)])
def test_a_phone_shows_every_view_without_scrolling_sideways(
    view: str, address: str, browser: Browser
) -> None:
    phone = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.call("Emulation.setDeviceMetricsOverride", **phone)
    try:
        browser.open(f"{address}#view={view}")
        assert browser.run("document.documentElement.scrollWidth") <= phone["width"]
    finally:
        browser.call("Emulation.clearDeviceMetricsOverride")


def test_the_page_shows_a_change_by_itself(browser: Browser) -> None:
    with serving() as site:
        site.show(outcome_of(tree_of("node-1", "node-2")))
        browser.open(f"http://{site.port.address}/")
        assert "2 of 2" in text_of(browser, "#tiles")
        site.show(outcome_of(tree_of("node-1", "node-2", "node-3")))
        browser.wait_for("document.getElementById('tiles').innerText.includes('3 of 3')")
        assert "Live, checked" in text_of(browser, "#status")
