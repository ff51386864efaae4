"""How soon the page of a large fabric is there, and how smooth it is: python -m tests.bench.page.

A real Chromium without a window opens the file that `toponaut export html` writes. Both times are
those that a reader waits, painting included: the first picture counts from the start of the
navigation to the frame after the first drawing, and a step from the key to the frame that shows
its effect (the Event Timing of W3C, in steps of 8 ms). The least of some runs counts, because
whatever else runs on the machine only adds to it.
"""

from __future__ import annotations

import json
import random  # noqa: TID251 - the seeded random source of faults
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from generator.web import build_page_document, render_page
from tests.lab.page.browser import Browser, chromium
from topology.inference.tree_inference import infer_tree
from topology.join.fabric_join import build_fabric
from topology.model.claims import Claim, Origin
from topology.planes.plane import split_planes
from topology.synthetic import (
    FabricKind,
    FaultSpec,
    SyntheticSpec,
    build_wiring,
    damage_fabric,
    sweep_devices,
)

FIRST_PICTURE_MS: Final = 1000
STEP_MS: Final = 100
KEYS: Final = ("+", "+", "ArrowRight", "+", "+", "ArrowLeft", "+", "+", "-", "-", "0")
"""From the whole fabric to the ports of some hosts, and back."""
_NEXT_FRAME: Final = (
    "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
)
_RUNS: Final = 3
_FAULTS: Final = FaultSpec(lose_links=0.002, num_swaps=20)
_WATCH: Final = """
    window.slowest = 0;
    new PerformanceObserver((list) => {
        for (const row of list.getEntries())
            if (row.name === "keydown") window.slowest = Math.max(window.slowest, row.duration);
    }).observe({ type: "event", durationThreshold: 16, buffered: true });
    const look = () => {
        if (document.body?.dataset.drawMs) requestAnimationFrame(() => {
            document.body.dataset.shownMs = performance.now();
        });
        else requestAnimationFrame(look);
    };
    requestAnimationFrame(look);
"""


class PageTimes(NamedTuple):
    """What a reader of one page waits."""

    num_hosts: int
    num_hcas: int
    num_links: int
    num_bytes: int
    first_picture_ms: float
    slowest_step_ms: float
    """0 if every step took less than 16 ms."""

    @property
    def is_within(self) -> bool:
        """Whether it is as smooth as it is meant to be."""
        return self.first_picture_ms <= FIRST_PICTURE_MS and self.slowest_step_ms <= STEP_MS


def measure_page(num_hosts: int, rails: int) -> PageTimes:
    """Open the page of a fabric several times, and return the least times."""
    document = build_document(num_hosts, rails)
    with tempfile.TemporaryDirectory(prefix="toponaut-bench-") as folder:
        file = Path(folder) / "fabric.html"
        file.write_text(render_page(document))
        with chromium(Path(folder)) as browser:
            browser.call("Page.addScriptToEvaluateOnNewDocument", source=_WATCH)
            runs = [_time_page(browser, file.as_uri()) for _ in range(_RUNS)]
        return PageTimes(
            num_hosts,
            num_hosts * rails,
            len(document["links"]["a"]),
            file.stat().st_size,
            min(first for first, _ in runs),
            min(slowest for _, slowest in runs),
        )


def build_document(num_hosts: int, rails: int) -> dict[str, Any]:
    """Return the document of a fabric that is swept."""
    spec = SyntheticSpec(FabricKind.RAIL, num_hosts, rails=rails, radix=64)
    damaged = damage_fabric(build_wiring(spec), _FAULTS, random.Random(0))  # noqa: S311 - draws faults
    fabric = build_fabric([Claim(device, Origin.SWEEP) for device in sweep_devices(damaged)])
    inference = infer_tree(fabric)
    return build_page_document(inference.tree, split_planes(fabric), inference.findings)


def _time_page(browser: Browser, address: str) -> tuple[float, float]:
    browser.open(address, ready="document.body.dataset.shownMs")
    first = float(browser.run("document.body.dataset.shownMs"))
    browser.focus_by_tab("#picture")
    for key in KEYS:
        browser.press(key)
        browser.run(_NEXT_FRAME)
    return first, float(browser.run("window.slowest"))


@click.command()
@click.option("--hosts", type=click.IntRange(min=2), default=(8192, 10_000), multiple=True)
@click.option("--rails", type=click.IntRange(min=1), default=8, show_default=True)
@click.option(
    "--output", "-o", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def main(hosts: Sequence[int], rails: int, output: str) -> None:
    """Print how long a reader waits for the first picture, and for a step of the zoom."""
    rows = [measure_page(num, rails) for num in hosts]
    if output == "json":
        click.echo(json.dumps([{**row._asdict(), "is_within": row.is_within} for row in rows]))
        return
    click.echo(f"first picture at most {FIRST_PICTURE_MS} ms, a step at most {STEP_MS} ms")
    for row in rows:
        step = f"{row.slowest_step_ms:.0f}" if row.slowest_step_ms else "less than 16"
        click.echo(
            f"{row.num_hosts} hosts, {row.num_hcas} HCAs, {row.num_links} links, "
            f"{row.num_bytes / 1e6:.1f} MB: first picture {row.first_picture_ms:.0f} ms, "
            f"slowest step {step} ms: {'within' if row.is_within else 'MISSED'}"
        )


if __name__ == "__main__":
    main()
