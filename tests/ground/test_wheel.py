"""The wheel: what is in it, what it asks for, and that its import names are ours alone."""

import subprocess
import sys
import zipfile
from email.message import Message
from email.parser import Parser
from importlib import metadata
from pathlib import Path

import pytest

from tests.repository import ROOT, tracked_files

PACKAGES = ("agent", "generator", "runtime", "topology")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def names(wheel: Path) -> frozenset[str]:
    with zipfile.ZipFile(wheel) as archive:
        return frozenset(archive.namelist())


@pytest.fixture(scope="module")
def declared(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (path,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(path).decode())


def test_it_ships_the_four_packages_and_nothing_beside_them(names: frozenset[str]) -> None:
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == set(PACKAGES)


def test_it_ships_every_file_of_the_packages(names: frozenset[str]) -> None:
    ours = {path.relative_to(ROOT) for path in tracked_files()}
    missing = {str(path) for path in ours if path.parts[0] in PACKAGES} - names
    assert not missing


@pytest.mark.parametrize("package", PACKAGES)
def test_it_tells_type_checkers_that_it_is_typed(names: frozenset[str], package: str) -> None:
    assert f"{package}/py.typed" in names


def test_it_ships_its_licence(names: frozenset[str], declared: Message) -> None:
    assert declared["License-Expression"] == "Apache-2.0"
    assert any(name.endswith("/licenses/LICENSE") for name in names)


def test_it_asks_for_scapy_only_with_its_own_extra(declared: Message) -> None:
    asked = [text for text in declared.get_all("Requires-Dist", []) if text.startswith("scapy")]
    assert [text.split(";")[1].strip() for text in asked] == ["extra == 'agent-frames'"]


@pytest.mark.wheel
@pytest.mark.parametrize("package", PACKAGES)
def test_it_owns_its_import_names_alone(package: str) -> None:
    others = [
        found.name
        for found in metadata.distributions()
        if found.name != "toponaut"
        if any(file.parts[0] == package for file in found.files or ())
    ]
    assert not others


@pytest.mark.wheel
@pytest.mark.parametrize("command", ["toponaut", "kubectl-toponaut", "toponaut-agent"])
def test_it_installs_commands_that_can_be_called(command: str) -> None:
    (entry,) = metadata.entry_points(group="console_scripts", name=command)
    assert callable(entry.load())
