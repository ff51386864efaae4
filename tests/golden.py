"""Expected outputs that live in files: compared by default, rewritten by `make golden`."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Golden:
    """What a test compares its output with."""

    is_rewriting: bool

    def check(self, path: Path, actual: str) -> None:
        """Fail unless `path` holds `actual`; under `pytest --golden` make it so.

        The diff of a rewriting run is what a reviewer reads.
        """
        if self.is_rewriting:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(actual, encoding="utf-8")
        assert path.is_file(), f"{path.name} is missing: run make golden"
        assert actual == path.read_text(encoding="utf-8")
