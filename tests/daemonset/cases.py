"""The ways to install that `fixtures/chart` holds, one folder each, and what each renders."""

from pathlib import Path
from typing import Any, Final

from tests.daemonset.tools import render
from tests.documents import parse_documents
from tests.repository import ROOT

_FOLDER: Final = ROOT / "fixtures" / "chart"
CASES: Final = tuple(sorted(file.parent for file in _FOLDER.glob("*/input.yaml")))
Document = dict[str, Any]


class Renderings:
    """What each case renders, rendered once."""

    def __init__(self, home: Path) -> None:
        """Render nothing yet; Helm's own files go into `home`."""
        self._home = home
        self._known: dict[str, list[Document]] = {}

    def of(self, case: str) -> list[Document]:
        """Return the objects of a case, in the order in which Helm installs them."""
        if case not in self._known:
            answer = render([_FOLDER / case / "input.yaml"], home=self._home)
            assert answer.returncode == 0, answer.stderr
            self._known[case] = parse_documents(answer.stdout)
        return self._known[case]


def one_of(documents: list[Document], kind: str, name: str) -> Document:
    """Return the object of this kind and name."""
    found = [one for one in documents if (one["kind"], one["metadata"]["name"]) == (kind, name)]
    assert len(found) == 1, f"{len(found)} of {kind} {name}"
    return found[0]
