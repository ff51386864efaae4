"""The rules of the house that no linter knows: sizes, addresses, paths, locks, documents."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.repository import ROOT, tracked_files

MAX_LINES = 600
GENERATED = re.compile(r"_pb2(_grpc)?\.pyi?\Z")
# Written in pieces, so that this file does not hold what it forbids.
REGISTRIES = re.compile(
    "|".join(
        name.replace(" ", r"\.")
        for name in (
            "pypi org",
            "pythonhosted org",
            "proxy golang org",
            "registry npmjs org",
            "crates io",
            "docker io",
            "quay io",
            "ghcr io",
            "registry k8s io",
            "deb debian org",
        )
    )
)
OUR_PATHS = re.compile(r"`((?:agent|generator|runtime|tests|tools|topology)/[a-z0-9_/]*(?:\.py|/))")
MACHINE_PATHS = re.compile(r"(?<![\w./-])/(?:root|home|Users|work|opt/wheels)/[\w.-]+")
LOCKED = re.compile(
    r"(?P<name>[a-z0-9.-]+)(?:\[(?P<extras>[a-z0-9,-]+)\])?==(?P<version>[\w.]+)(?: ; .+)? \\\Z"
)
LOCKS = sorted(path.stem for path in (ROOT / "requirements").glob("*.txt"))
HASH = re.compile(r"    --hash=sha256:[0-9a-f]{64}( \\)?\Z")


def texts() -> Iterator[tuple[Path, str]]:
    for path in tracked_files():
        try:
            yield path.relative_to(ROOT), path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def lines_with(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path}:{number}: {line.strip()[:100]}"
        for path, text in texts()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]


def lock_lines(name: str) -> list[str]:
    return (ROOT / "requirements" / f"{name}.txt").read_text().splitlines()


def required_by_installed(name: str) -> list[Requirement]:
    """Return what an installed distribution requires here; nothing where it is not installed."""
    try:
        wanted = metadata.requires(name) or []
    except metadata.PackageNotFoundError:
        return []
    requirements = [Requirement(text) for text in wanted]
    return [each for each in requirements if not each.marker or each.marker.evaluate({"extra": ""})]


def locked(name: str) -> dict[str, list[Version]]:
    """Return the versions of each locked distribution; several where Python's version decides."""
    found: dict[str, list[Version]] = {}
    for line in lock_lines(name):
        pin = LOCKED.match(line)
        if pin:
            found.setdefault(pin["name"], []).append(Version(pin["version"]))
    return found


def required(use: str) -> list[Requirement]:
    """Return what pyproject.toml asks for a use: an extra of the project, or all of dev."""
    document = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project, groups = document["project"], document["dependency-groups"]
    extra = "generator" if use == "dev" else use
    wanted = [*project["dependencies"], *project["optional-dependencies"][extra]]
    if use == "dev":
        names = [entry["include-group"] for entry in groups["dev"]]
        wanted += [requirement for name in names for requirement in groups[name]]
    return [Requirement(text) for text in wanted]


def test_it_keeps_every_source_file_short() -> None:
    long = [
        f"{path}: {len(text.splitlines())} lines"
        for path, text in texts()
        if path.suffix == ".py" and not GENERATED.search(path.name) and path.parts[0] != "fixtures"
        if len(text.splitlines()) > MAX_LINES
    ]
    assert not long


def test_its_messages_have_plain_plurals() -> None:
    pattern = re.compile("[A-Za-z]" + re.escape("(s)"))
    found = [row for row in lines_with(pattern) if row.startswith(("agent/", "generator/"))]
    found += [row for row in lines_with(pattern) if row.startswith(("runtime/", "topology/"))]
    assert [row for row in found if "/vendor/" not in row] == []


def test_it_names_no_registry() -> None:
    assert not lines_with(REGISTRIES)


def test_it_names_no_path_of_a_machine() -> None:
    assert not lines_with(MACHINE_PATHS)


@pytest.mark.parametrize("use", ["agent", "generator", "dev"])
def test_it_locks_what_the_project_asks_for(use: str) -> None:
    pins = locked(use)
    stale = [
        str(requirement)
        for requirement in required(use)
        if not pins.get(canonicalize_name(requirement.name))
        or not all(version in requirement.specifier for version in pins[requirement.name.lower()])
    ]
    assert not stale, "run make lock"


@pytest.mark.parametrize("use", ["agent", "generator"])
def test_it_deploys_the_versions_that_it_tests(use: str) -> None:
    tested = locked("dev")
    assert {name: tested.get(name) for name in locked(use)} == locked(use)


@pytest.mark.parametrize("name", LOCKS)
def test_it_pins_each_extra_that_a_locked_distribution_asks_for(name: str) -> None:
    """pip takes the newest version of `coverage[toml]` where only `coverage` is pinned.

    It then refuses to install it without a hash, from the day on which a newer one is published.
    Only distributions that are installed here can be asked for what they require.
    """
    pins = [pin for pin in map(LOCKED.match, lock_lines(name)) if pin]
    extras = {pin["name"]: set((pin["extras"] or "").split(",")) for pin in pins}
    unpinned = [
        f"{asker} requires {requirement}"
        for asker in extras
        for requirement in required_by_installed(asker)
        if not requirement.extras <= extras.get(canonicalize_name(requirement.name), set())
    ]
    assert not unpinned, "tools/lock must keep the extras"


@pytest.mark.parametrize("name", LOCKS)
def test_it_locks_by_hash_and_nothing_else(name: str) -> None:
    lines = lock_lines(name)
    odd = [
        line
        for line in lines
        if not (LOCKED.match(line) or HASH.match(line) or re.match(r"    # [\w /:.()-]+\Z", line))
    ]
    assert lines
    assert not odd


def test_it_keeps_the_agent_free_of_what_only_the_generator_needs() -> None:
    heavy = {"grpcio", "kubernetes", "numpy", "protobuf", "pysnmp", "rich", "scapy"}
    assert not heavy & set(locked("agent"))


def test_it_never_installs_gpl_code_unasked() -> None:
    # Its tests are not part of what is shipped: they may run beside it.
    assert "scapy" not in {name for use in ("agent", "generator") for name in locked(use)}
    assert "GPL-2.0" in (ROOT / "README.md").read_text()


def test_it_tells_how_to_start_on_the_first_screen() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 120
    assert any("make demo" in line for line in lines[:20])


def test_it_documents_only_commands_that_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    documents = [(path, text) for path, text in texts() if path.suffix == ".md"]
    unknown = [
        f"{path}: make {target}"
        for path, text in documents
        for target in re.findall(r"(?:`|^|&& )make ([a-z-]+)", text, re.MULTILINE)
        if target not in targets
    ]
    assert documents
    assert not unknown


def test_its_guide_names_only_files_and_names_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    paths = set(re.findall(r"`([a-z][a-z_/]*/[a-z_-]+\.[a-z]+)`", text))
    assert len(paths) > 20
    assert not {path for path in paths if not (ROOT / path).is_file()}
    named = re.findall(r"((?:`\w+`(?:, | and |, and )?)+),? of `([\w/.-]+)`", text)
    assert len(named) > 20
    wrong = [
        f"{path}: {name}"
        for names, path in named
        for name in re.findall(r"`(\w+)`", names)
        if not re.search(rf"\b{name}\b", (ROOT / path).read_text())
    ]
    assert not wrong


def test_it_documents_only_files_that_exist() -> None:
    # A decision stays as it was written, with the files of its time.
    documents = [
        (path, text)
        for path, text in texts()
        if path.suffix == ".md" and path.parent.name != "adr" and path.name != "CHANGELOG.md"
    ]
    unknown = [
        f"{path}: {name}"
        for path, text in documents
        for name in OUR_PATHS.findall(text)
        if not (ROOT / name).exists()
    ]
    assert len(documents) > 1
    assert not unknown


def test_its_changelog_lists_each_change_once() -> None:
    # A merge keeps both versions of a line that two branches changed.
    text = (ROOT / "CHANGELOG.md").read_text()
    starts = Counter(line[:45] for line in text.splitlines() if line.startswith("- "))
    assert len(starts) > 100
    assert [start for start, num in starts.items() if num > 1] == []
