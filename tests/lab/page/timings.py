"""How long a reader of an exported page waits: `python -m tests.lab.page.timings FILE`."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Final

from tests.lab.page.browser import chromium

ZOOM: Final = """(async () => {
    const chart = echarts.getInstanceByDom(document.getElementById("partition"));
    const [{ max }] = chart.getOption().xAxis;
    const steps = [];
    for (let step = 0; step < 14; step += 1) {
        const span = max * 0.62 ** step;
        const startValue = Math.max(0, 0.41 * max - span / 2);
        const began = performance.now();
        chart.dispatchAction({ type: "dataZoom", startValue, endValue: startValue + span });
        chart.getZr().flush();
        steps.push(performance.now() - began);
        await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
    }
    return Math.max(...steps);
})()"""
"""Zooms from the whole fabric to a few hosts, and returns the slowest step in milliseconds."""


def print_times(file: Path) -> None:
    """Print when the first picture is complete, and how long the slowest step of a zoom takes."""
    with tempfile.TemporaryDirectory() as folder, chromium(Path(folder)) as browser:
        browser.open(file.resolve().as_uri())
        first = float(browser.run("document.body.dataset.readyMs"))
        slowest = float(browser.run(ZOOM))
    sys.stdout.write(f"first picture {first / 1000:.2f} s, slowest zoom {slowest:.0f} ms\n")


if __name__ == "__main__":
    print_times(Path(sys.argv[1]))
