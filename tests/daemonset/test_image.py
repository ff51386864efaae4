"""The content of the images, as far as their files show; `make image` builds and starts them."""

import re

from tests.daemonset.readers import written
from tests.repository import ROOT

CONTAINERFILE = ROOT / "daemonset" / "image" / "Containerfile"


def stages() -> dict[str, list[str]]:
    """Return the instructions of each stage, by its name."""
    text = CONTAINERFILE.read_text().replace("\\\n", " ")
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        stage = re.match(r"FROM \S+ AS (\w+)$", line)
        if stage:
            found[stage[1]] = []
        elif found and line and not line.startswith("#"):
            found[[*found][-1]].append(line)
    return found


def locked(name: str) -> set[str]:
    text = (ROOT / "requirements" / f"{name}.txt").read_text()
    return set(re.findall(r"^\S+==\S+", text, re.MULTILINE))


def test_it_runs_nothing_in_the_last_stages() -> None:
    last = {name: lines for name, lines in stages().items() if name != "site"}
    assert set(last) == {"program", "agent", "generator"}
    words = {line.split()[0] for lines in last.values() for line in lines}
    assert words == {"COPY", "ENV", "LABEL", "USER", "ENTRYPOINT"}


def test_it_runs_as_nobody_in_particular() -> None:
    assert "USER 65532:65532" in stages()["program"]


def test_it_installs_by_hash_and_from_what_was_fetched() -> None:
    (install, *_) = (line for line in stages()["site"] if line.startswith("RUN"))
    first, second = install.split("&&")
    assert "--require-hashes" in first
    assert "--no-index" in first
    assert "--no-index" in second
    assert "--no-deps" in second


def test_it_adds_scapy_to_the_agent_that_hears_frames_and_to_no_other() -> None:
    extra = locked("agent-frames") - locked("agent")
    assert [one.split("==")[0] for one in extra] == ["scapy"]
    assert locked("agent") <= locked("agent-frames")
    assert not any(one.startswith("scapy==") for one in locked("agent") | locked("generator"))


def test_the_docs_push_what_is_built() -> None:
    """`tools/images` checks that each list has both architectures."""
    (push,) = written("install.md", "Build the images")
    script = (ROOT / "tools/images").read_text()
    (names,) = re.findall(r"^for name in (.*); do$", push, re.MULTILINE)
    assert f"for name in {names}; do" in script
    (found,) = re.findall(
        r'^version = "(.+)"$', (ROOT / "pyproject.toml").read_text(), re.MULTILINE
    )
    assert f"--all localhost/toponaut/$name:{found} " in push
    assert "list=localhost/toponaut/$1:$version " in script
    assert "architectures=(amd64 arm64)" in script
