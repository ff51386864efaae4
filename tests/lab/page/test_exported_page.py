"""The page in a real Chromium, opened from disk."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from generator.web import build_page_document, render_page
from tests.generator.scenes import run
from tests.lab.tools import require_tools
from topology.model.facts import Finding, FindingKind, Severity
from topology.model.tree import DomainSpec, build_tree

pytestmark = pytest.mark.lab
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1400,800",
)


def open_page(file: Path, address: str) -> str:
    """Return the document that Chromium has after the scripts of the page ran."""
    require_tools("chromium")
    profile = file.parent / "profile"
    words = ("chromium", *FLAGS, f"--user-data-dir={profile}", "--dump-dom")
    ran = subprocess.run(
        [*words, f"{file.as_uri()}#{address}"], capture_output=True, check=True, timeout=60
    )
    return ran.stdout.decode()


def test_both_views_load_from_disk(tmp_path: Path) -> None:
    folder = tmp_path / "fabric"
    words = ("--hosts", "64", "--rails", "2", "--radix", "8", "--swap", "1", "--out", folder)
    assert run("simulate", "fabric", *words).code == 0
    file = tmp_path / "fabric.html"
    file.write_text(run("export", "html", "--reports", folder / "reports").out)
    fabric = open_page(file, "view=fabric")
    assert re.search(r'data-draw-ms="[\d.]+"', fabric)
    assert "data-ready-ms" in fabric
    assert re.search(r"<strong[^>]*>\d+ of 64</strong>", fabric)
    device = open_page(file, "view=fabric&device=node-0001")
    assert "host node-0001" in device
    assert re.search(r'<section id="findings"[^>]* hidden', fabric)
    unknown = open_page(file, "view=fabric&device=node-00")
    assert "Names that contain it" in unknown
    assert "and 52 more" in unknown
    findings = open_page(file, "view=findings")
    assert "Exchange the plugs at" in findings
    assert re.search(r'<section id="fabric"[^>]* hidden', findings)


def test_a_domain_lists_the_nodes_inside_of_it_of_a_cause_that_others_share(tmp_path: Path) -> None:
    folder = tmp_path / "fabric"
    words = ("--hosts", "64", "--rails", "2", "--radix", "8", "--silent", "40%", "--out", folder)
    assert run("simulate", "fabric", *words).code == 0
    sources = ("--reports", folder / "reports", "--nodes", folder / "nodes.yaml")
    file = tmp_path / "fabric.html"
    file.write_text(run("export", "html", *sources).out)
    domain = open_page(file, "view=fabric&device=leaf-p02-g03-r1-2")
    (causes,) = re.findall(r'<ul class="causes">(.*?)</ul>', domain)
    named = {int(number) for number in re.findall(r"node-(\d{4})", causes)}
    assert named
    assert named <= set(range(9, 13))


def test_it_shows_hostile_names_as_text(tmp_path: Path) -> None:
    name = "</script><img src=x onerror=document.title='owned'>"
    tree = build_tree(
        [DomainSpec(name, tier=1, parent=None, nodes=(name, "node-2"))], tiers=("leaf",)
    )
    finding = Finding(FindingKind.DOWN_PORT, name, name, severity=Severity.ERROR, message=name)
    file = tmp_path / "fabric.html"
    file.write_text(render_page(build_page_document(tree, None, [finding])))
    shown = open_page(file, "view=findings")
    assert "data-ready-ms" in shown
    assert "<img" not in re.sub(r"<script.*?</script>", "", shown, flags=re.DOTALL)
    assert "&lt;img src=x" in shown
    assert "<title>Toponaut: findings</title>" in shown
