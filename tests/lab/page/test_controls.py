"""What a reader does with an exported page: networks, zoom, search, CSV and print."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.generator.scenes import run
from tests.lab.page.browser import SOON_S, Browser, chromium
from tests.lab.wait import wait_until

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("page")]

STORAGE_SWITCHES: Final = 2
FABRIC: Final = (
    *("--hosts", "32", "--rails", "4", "--radix", "16", "--medium", "ethernet"),
    *("--storage-leaves", str(STORAGE_SWITCHES), "--swap", "1", "--lose-links", "6%"),
)
COUNT: Final = "Number(document.getElementById('findings-table').dataset.rows)"
"""How many rows the list of findings has; only those in view are elements of the page."""
HASH: Final = "new URLSearchParams(location.hash.slice(1))"


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the address of a page of a fabric with a storage network and faults."""
    folder = tmp_path_factory.mktemp("tools") / "fabric"
    assert run("simulate", "fabric", *FABRIC, "--out", folder).code == 0
    file = folder.parent / "fabric.html"
    file.write_text(run("export", "html", "--reports", folder / "reports").out)
    return file.as_uri()


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with chromium(tmp_path_factory.mktemp("chromium")) as browser:
        yield browser


@pytest.fixture
def browser(started: Browser) -> Iterator[Browser]:
    started.leave()
    started.problems.clear()
    yield started
    assert started.problems == []


def read_address(browser: Browser, name: str) -> Any:  # noqa: ANN401 - a text, or None
    return browser.run(f"{HASH}.get({json.dumps(name)})")


def read_picture(browser: Browser, chart: str = "#partition") -> str:
    """Return what a chart shows, once it is drawn."""
    canvas = f"document.querySelector('{chart} canvas')"
    browser.wait_for(canvas)
    browser.run("new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)))")
    return str(browser.run(f"{canvas}.toDataURL()"))


def choose(browser: Browser, selector: str, *keys: str) -> None:
    browser.focus_by_tab(selector)
    browser.press(*keys)


def test_a_network_is_chosen_by_keyboard_and_shown_alone(page: str, browser: Browser) -> None:
    browser.open(page)
    names = browser.run("[...document.getElementById('plane').options].map((one) => one.text)")
    assert names[:3] == ["all", "compute", "storage"]
    cables = "document.querySelector('#tiles .tile:nth-child(2)').innerText"
    shown = [browser.run(cables)]
    for plane in ("compute", "storage"):
        choose(browser, "#plane", "ArrowDown")
        browser.wait_for(f"{HASH}.get('plane') === '{plane}'")
        shown.append(browser.run(cables))
    assert len(set(shown)) == len(shown), "each network has other cables"
    browser.open(f"{page}#view=fabric&plane=storage")
    assert browser.run(cables) == shown[-1], "a copied address shows the same network"
    browser.open(f"{page}#view=fabric&device=node-0001&plane=storage")
    assert browser.run("document.querySelector('#device h3').innerText") == (
        f"{STORAGE_SWITCHES} cables"
    )


@pytest.mark.parametrize("color", ["links", "faults"])
def test_the_color_is_chosen_by_keyboard(color: str, page: str, browser: Browser) -> None:
    other = {"links": "faults", "faults": "links"}[color]
    browser.open(f"{page}#color={other}")
    before = read_picture(browser)
    choose(browser, f"[data-value={color}]", "Enter")
    browser.wait_for(f"document.activeElement.matches('[data-value={color}][aria-pressed=true]')")
    assert read_picture(browser) != before


def test_what_the_sources_do_not_tell_cannot_be_chosen(page: str, browser: Browser) -> None:
    browser.open(page)
    assert browser.run("document.querySelector('[data-value=jobs]').disabled")
    assert browser.run("document.querySelector('[data-value=free]').title") == (
        "only a running server knows jobs"
    )


def test_enter_goes_into_a_domain_and_the_address_opens_the_same_part(
    page: str, browser: Browser
) -> None:
    browser.open(page)
    whole = read_picture(browser)
    choose(browser, "#partition", "ArrowRight", "ArrowUp", "ArrowDown", "ArrowRight", "Enter")
    browser.wait_for(f"{HASH}.has('at')")
    start, stop = map(float, read_address(browser, "at").split(","))
    assert (start, stop) == (8, 16), "the second leaf fills the width"
    address = browser.run("location.href")
    near = read_picture(browser)
    browser.press("0")
    browser.wait_for(f"!{HASH}.has('at')")
    browser.open(str(address))
    assert read_picture(browser) not in {whole, ""}
    assert near != whole
    choose(browser, "#partition", "ArrowDown", "ArrowDown", "ArrowDown", "Enter")
    browser.wait_for("document.querySelector('#device h2')?.innerText.startsWith('host ')")


def test_a_cell_of_the_grid_opens_the_cable(page: str, browser: Browser) -> None:
    leaf = read_leaf(page, browser)
    browser.open(f"{page}#view=fabric&domain={leaf}")
    choose(browser, ".grid-chart", "ArrowRight", "ArrowDown")
    said = str(browser.run("document.getElementById('announcer').textContent"))
    assert " port " in said
    browser.press("Enter")
    browser.wait_for("document.querySelector('#device h2')")
    assert str(browser.run("document.querySelector('#device h2').innerText")).endswith(
        said.partition(" port ")[0]
    )


def read_leaf(page: str, browser: Browser) -> str:
    browser.open(page)
    document = json.loads(browser.run("document.getElementById('document').textContent"))
    return str(next(row["name"] for row in document["domains"] if row["tier"] == 1))


@pytest.mark.parametrize("part", ["name", "guid"])
def test_the_search_finds_by_name_and_by_id(part: str, page: str, browser: Browser) -> None:
    browser.open(page)
    wanted = "node-0009"
    if part == "guid":
        wanted = str(
            browser.run("""(() => {
                const { devices } = JSON.parse(document.getElementById("document").textContent);
                return devices.ids[devices.name.indexOf("node-0009")].at(-1);
            })()""")
        )
    choose(browser, "#name")
    browser.type_text(wanted)
    browser.press("Enter")
    browser.wait_for("document.querySelector('#device h2')?.innerText === 'host node-0009'")
    assert read_address(browser, "device") == "node-0009"


def test_a_search_without_a_result_says_so(page: str, browser: Browser) -> None:
    browser.open(page)
    choose(browser, "#name")
    browser.type_text("no-such-device")
    browser.press("Enter")
    browser.wait_for("document.getElementById('status').innerText === 'Nothing found.'")


def test_the_csv_has_every_finding_that_matches(
    page: str, browser: Browser, tmp_path: Path
) -> None:
    browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    browser.open(f"{page}#view=findings&kind=swapped-cable")
    choose(browser, "#csv", "Enter")
    file = tmp_path / "findings.csv"
    wait_until(lambda: not file.exists(), deadline_s=SOON_S, what="the saved file")
    rows = list(csv.DictReader(file.read_text().splitlines()))
    shown = browser.run(COUNT)
    assert rows
    assert len(rows) == shown
    assert {row["kind"] for row in rows} == {"swapped-cable"}
    assert all(" port " in row["ports"] for row in rows)


def test_a_row_is_a_cause_or_on_request_a_finding(page: str, browser: Browser) -> None:
    browser.open(f"{page}#view=findings")
    document = json.loads(browser.run("document.getElementById('document').textContent"))
    findings = document["findings"]
    assert browser.run(COUNT) < len(findings)
    browser.open(f"{page}#view=findings&by=finding")
    assert browser.run(COUNT) == len(findings)
    hidden = [row for place, row in enumerate(findings) if row["cause"] != place]
    kind = hidden[0]["kind"]
    lead = findings[hidden[0]["cause"]]["kind"]
    assert kind != lead
    browser.open(f"{page}#view=findings&kind={kind}")
    assert browser.run(COUNT) == sum(row["kind"] == kind for row in findings)


def test_the_printed_list_follows_the_tree_and_stands_alone(page: str, browser: Browser) -> None:
    browser.open(f"{page}#view=findings")
    browser.run("dispatchEvent(new Event('beforeprint'))")
    assert browser.run("document.querySelector('#printed-list tbody tr') !== null")
    browser.run("document.getElementById('printed-list').replaceChildren()")
    browser.run("window.print = () => { document.body.dataset.printed = 'yes'; }")
    choose(browser, "#print-list", "Enter")
    browser.wait_for("document.body.dataset.printed")
    document = json.loads(browser.run("document.getElementById('document').textContent"))
    names = document["devices"]["name"]
    place_of = {names[device]: place for place, device in enumerate(document["hosts"])}
    devices = browser.run(
        "[...document.querySelectorAll('#printed-list tbody tr')].map((r) => r.dataset.device)"
    )
    causes = [place for place, row in enumerate(document["findings"]) if row["cause"] == place]
    assert len(devices) == len(causes) < len(document["findings"])
    places = [place_of[device] for device in devices if device in place_of]
    assert len(places) > 1
    assert places == sorted(places)
    browser.call("Emulation.setEmulatedMedia", media="print")
    try:
        shown = "getComputedStyle(document.querySelector(SELECTOR)).display"
        assert browser.run(shown.replace("SELECTOR", "'nav'")) == "none"
        assert browser.run(shown.replace("SELECTOR", "'#printed-list tr'")) == "table-row"
    finally:
        browser.call("Emulation.setEmulatedMedia", media="")


def test_chips_and_counts_are_those_of_the_terminal(page: str, browser: Browser) -> None:
    browser.open(f"{page}#view=findings")
    document = json.loads(browser.run("document.getElementById('document').textContent"))
    findings = document["findings"]
    causes = {row["cause"] for row in findings}
    count = str(browser.run("document.getElementById('count').innerText"))
    assert count == f"{len(findings)} findings of {len(causes)} causes"
    chips = browser.run("[...document.querySelectorAll('.chip')].map((one) => one.innerText)")
    counts = Counter(row[name] for row in findings for name in ("severity", "kind"))
    assert sorted(chips) == sorted(f"{name} {num}" for name, num in counts.items())
    browser.open(page)
    tile = str(browser.run("document.querySelector('#tiles .tile:nth-child(3)').innerText"))
    assert tile.split("\n")[:2] == ["Findings", str(len(findings))]
    assert f"of {len(causes)} causes: " in tile


def test_a_phone_cuts_no_kind_and_tells_rows_apart(page: str, browser: Browser) -> None:
    phone = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.call("Emulation.setDeviceMetricsOverride", **phone)
    try:
        browser.open(f"{page}#view=findings")
        cells = "[...document.querySelectorAll('#findings-table .tabulator-cell')]"
        cut = f"{cells}.filter((one) => one.checkVisibility() && one.scrollWidth > one.clientWidth)"
        assert browser.run(f"{cut}.map((one) => one.innerText)") == []
        rows = browser.run(
            "[...document.querySelectorAll('#findings-table .tabulator-row')]"
            ".map((one) => one.innerText)"
        )
        assert len(rows) == len(set(rows)) > 1
    finally:
        browser.call("Emulation.clearDeviceMetricsOverride")


def test_cables_that_are_absent_count_as_bad(page: str, browser: Browser) -> None:
    browser.open(page)
    document = json.loads(browser.run("document.getElementById('document').textContent"))
    assert document["absent"]
    tile = str(browser.run("document.querySelector('#tiles .tile:nth-child(2)').innerText"))
    assert f"{len(document['absent'])} missing" in tile
    assert "100 %" not in tile


def test_silent_nodes_and_the_cables_of_a_lost_switch_are_counted(
    browser: Browser, tmp_path: Path
) -> None:
    lost, words = "spine-p02-03", ("--hosts", 64, "--rails", 4, "--radix", 16, "--silent", "10%")
    assert run("simulate", "fabric", *words, "--lose", lost, "--out", tmp_path).code == 0
    sources = ("--reports", tmp_path / "reports", "--nodes", tmp_path / "nodes.yaml")
    missing = run("links", *sources, "--state", "missing", "-o", "json").document["links"]
    file = tmp_path / "fabric.html"
    file.write_text(run("export", "html", *sources).out)
    browser.open(file.as_uri())
    tiles = str(browser.run("document.getElementById('tiles').innerText"))
    assert "64 of 64\nevery node has a place, 6 silent" in tiles
    assert f"{len(missing)} missing" in tiles
    waiting = next(row["a"]["device"] for row in missing if row["b"]["device"] == lost)
    browser.open(f"{file.as_uri()}#view=fabric&device={waiting}")
    cells = "[...document.querySelectorAll('.tabulator-cell')].map((one) => one.innerText)"
    browser.wait_for(f"{cells}.includes('{lost}')")


def test_a_swap_is_shown_at_both_of_its_hosts(page: str, browser: Browser) -> None:
    browser.open(page)
    document = json.loads(browser.run("document.getElementById('document').textContent"))
    swaps = [row for row in document["findings"] if row["kind"] == "swapped-cable"]
    assert swaps
    names, kinds = document["devices"]["name"], document["devices"]["kind"]
    for row in swaps:
        for number, port in row["ends"]:
            if kinds[number] == "host":
                browser.open(f"{page}#view=fabric&device={names[number]}&port={port}")
                assert "swapped" in str(browser.run("document.getElementById('device').innerText"))
