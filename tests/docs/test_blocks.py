"""Each block of shell lines or Python in the pages runs as written, and prints what they show."""

import re
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from generator.objects.inventory import parse_nodes
from tests.docs.pages import KUBE, PAGES, Block, read_blocks
from tests.docs.scene import Shell, make_scene
from tests.repository import ROOT

pytestmark = [pytest.mark.timeout(300), pytest.mark.xdist_group("pages")]

BLOCKS = [
    block for page in PAGES for block in read_blocks(page) if block.language in {"sh", "python"}
]
ELSEWHERE = {
    "make ": ".ci/run",
    "helm ": "tests/daemonset/test_documented.py",
    "kubectl create namespace": "tests/daemonset/test_documented.py",
    "kubectl delete -f": "tests/daemonset/test_documented.py",
    "for tier in": "tests/daemonset/test_documented.py",
    "kubectl get fabrics": "tests/daemonset/test_documented.py",
    "kubectl wait fabric": "tests/kube/test_documented_pages.py",
    "promtool": "tests/daemonset/test_monitoring.py",
    "kubectl delete pres": "tests/daemonset/test_documented_operations.py",
    "toponaut plan --store DIR": "tests/daemonset/test_documented_operations.py",
    "toponaut serve --kube": "tests/daemonset/test_documented_operations.py",
    "kubectl patch fabric default --type merge --patch-file": (
        "tests/kube/test_documented_schedulers.py"
    ),
    "kubectl patch fabric default --type merge -p": "tests/kube/test_documented_pages.py",
    "toponaut export slurm-tree": "tests/lab/test_slurm.py",
    "toponaut doctor": "tests/kube/test_documented_pages.py",
    "toponaut tree --kube": "tests/kube/test_documented_pages.py",
    "toponaut adopt --kube": "tests/kube/test_adoption.py",
    "for root in": "tests/lab/test_snmp.py",
    "toponaut switches": "tests/lab/test_snmp.py",
    "toponaut serve --store store --switches": "tests/lab/test_serving.py",
}
"""By the begin of the first line: the file whose tests run the block."""
NEVER = {
    "for name in agent": "it needs a registry",
    "kubectl -n toponaut-system port-forward": "it needs a kubelet",
    "kubectl -n toponaut-system rollout": "it needs a kubelet",
}


def find_reason(block: Block) -> str:
    """Return what runs a block instead of this test, or why nothing does; empty for none."""
    for begin, reason in (*ELSEWHERE.items(), *NEVER.items()):
        if block.text.strip().startswith(begin):
            return reason
    return ""


LOCAL = [block for block in BLOCKS if not find_reason(block)]


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    make_scene(folder)
    return folder


@pytest.fixture
def shell(scene: Path, tmp_path: Path) -> Iterator[Shell]:
    folder = tmp_path / "work"
    # No line writes into the fabric that is there.
    shutil.copytree(scene, folder, symlinks=True, ignore=shutil.ignore_patterns("fabric", "planes"))
    (folder / "fabric").symlink_to(scene / "fabric")
    with closing(Shell(folder)) as shell:
        yield shell


@pytest.mark.parametrize("block", LOCAL, ids=[f"{one.page}:{one.line}" for one in LOCAL])
def test_it_runs_as_it_is_written(block: Block, shell: Shell) -> None:
    if block.language == "python":
        shell.run_python(block.text)
        return
    lines = block.text.replace("\\\n", "").splitlines()
    printed = "".join(shell.run(line) for line in lines if not KUBE.search(line))
    if not KUBE.search(block.text):
        plain = "".join(f"{row.rstrip()}\n" for row in printed.splitlines())
        assert re.search(as_pattern(block.shown), plain, re.MULTILINE), printed


def as_pattern(shown: str) -> str:
    """Return a pattern of the output that a page shows, where … stands for anything left out."""
    rows = (
        "(?:.*\n)*?" if row == "…" else re.escape(row.rstrip()).replace("…", ".*") + "\n"
        for row in shown.splitlines()
    )
    return "^" + "".join(rows)


def test_output_that_is_not_as_shown_is_found() -> None:
    shown = as_pattern("leaf-1  8 of 9\n…\nleaf-3  …\n")
    assert re.search(shown, "leaf-1  8 of 9\nleaf-2\nleaf-3  needs 1 more\n", re.MULTILINE)
    assert not re.search(shown, "leaf-1  7 of 9\nleaf-3  needs 1 more\n", re.MULTILINE)


def test_every_other_block_is_run_by_a_test_that_exists() -> None:
    assert [name for name in ELSEWHERE.values() if not (ROOT / name).is_file()] == []
    begins = (*ELSEWHERE, *NEVER)
    unused = [one for one in begins if not any(row.text.strip().startswith(one) for row in BLOCKS)]
    assert unused == []


def test_a_list_of_nodes_is_read_whole() -> None:
    (block,) = (
        block
        for block in read_blocks(ROOT / "docs/quick-start.md")
        if block.language == "yaml" and block.text.startswith("nodes:")
    )
    inventory = parse_nodes(block.text.encode(), source="quick-start.md")
    assert [node.name for node in inventory.nodes] == ["node-0001", "node-0002"]
    assert not inventory.problems
