"""What a reader does with an exported page: planes, zoom, search, addresses, CSV and work order."""

from __future__ import annotations

import csv
import json
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


def read_picture(browser: Browser) -> str:
    return str(browser.run("document.getElementById('picture').toDataURL()"))


def choose(browser: Browser, selector: str, *keys: str) -> None:
    browser.focus_by_tab(selector)
    browser.press(*keys)


def test_a_plane_is_chosen_by_keyboard_and_drawn_alone(page: str, browser: Browser) -> None:
    browser.open(page)
    names = browser.run("[...document.getElementById('plane').options].map((one) => one.text)")
    assert names[:3] == ["all", "compute", "storage"]
    pictures = [read_picture(browser)]
    for plane in ("compute", "storage"):
        choose(browser, "#plane", "ArrowDown")
        browser.wait_for(f"{HASH}.get('plane') === '{plane}'")
        pictures.append(read_picture(browser))
    assert len(set(pictures)) == len(pictures), "each choice draws other links"
    browser.open(f"{page}#view=fabric&plane=storage")
    assert read_picture(browser) == pictures[-1], "a copied address draws the same plane"


def test_a_rail_is_chosen_by_keyboard(page: str, browser: Browser) -> None:
    browser.open(page)
    before = read_picture(browser)
    choose(browser, "#rail", "ArrowDown")
    browser.wait_for(f"{HASH}.has('rail')")
    assert read_picture(browser) != before


def test_zoom_shows_less_and_the_address_opens_the_same_part(page: str, browser: Browser) -> None:
    browser.open(page)
    whole = read_picture(browser)
    choose(browser, "#nearer", "Enter", "Enter")
    _, span = map(float, read_address(browser, "at").split(","))
    assert span == 32 / 4
    choose(browser, "#picture", "ArrowRight")
    near, address = read_picture(browser), browser.run("location.href")
    browser.open(str(address))
    assert read_picture(browser) == near
    choose(browser, "#whole", "Enter")
    assert read_picture(browser) == whole
    assert read_address(browser, "at") is None


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
    browser.wait_for("document.getElementById('selected').innerText.includes('host node-0009')")
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
    shown = browser.run("document.getElementById('rows').rows.length")
    assert rows
    assert len(rows) == shown
    assert {row["kind"] for row in rows} == {"swapped-cable"}
    assert all(" port " in row["ports"] for row in rows)


def test_a_row_is_a_cause_or_on_request_a_finding(page: str, browser: Browser) -> None:
    browser.open(f"{page}#view=findings")
    count = "document.getElementById('rows').rows.length"
    document = json.loads(browser.run("document.getElementById('document').textContent"))
    findings = document["findings"]
    assert browser.run(count) < len(findings)
    browser.open(f"{page}#view=findings&by=finding")
    assert browser.run(count) == len(findings)
    hidden = [row for place, row in enumerate(findings) if row["cause"] != place]
    kind = hidden[0]["kind"]
    lead = findings[hidden[0]["cause"]]["kind"]
    assert kind != lead
    browser.open(f"{page}#view=findings&kind={kind}")
    assert browser.run(count) == sum(row["kind"] == kind for row in findings)


def test_the_work_order_follows_the_tree_and_prints_the_list_alone(
    page: str, browser: Browser
) -> None:
    browser.open(f"{page}#view=findings")
    browser.run("window.print = () => { document.body.dataset.printed = 'yes'; }")
    choose(browser, "#order", "Enter")
    browser.wait_for("document.body.dataset.printed")
    document = json.loads(browser.run("document.getElementById('document').textContent"))
    names = document["devices"]["name"]
    place_of = {names[device]: place for place, device in enumerate(document["hosts"])}
    rows = browser.run("[...document.getElementById('rows').rows].map((r) => r.cells[2].innerText)")
    causes = [place for place, row in enumerate(document["findings"]) if row["cause"] == place]
    assert len(rows) == len(causes) < len(document["findings"])
    devices = [row.partition(" port ")[0] for row in rows]
    places = [place_of[device] for device in devices if device in place_of]
    assert len(places) > 1
    assert places == sorted(places)
    browser.call("Emulation.setEmulatedMedia", media="print")
    try:
        shown = "getComputedStyle(document.querySelector(SELECTOR)).display"
        assert browser.run(shown.replace("SELECTOR", "'nav'")) == "none"
        assert browser.run(shown.replace("SELECTOR", "'#rows tr'")) == "table-row"
    finally:
        browser.call("Emulation.setEmulatedMedia", media="")
