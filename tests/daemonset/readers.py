"""A reader that follows a page of the docs word for word with Helm, kubectl and toponaut."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.daemonset.tools import find_tool
from tests.lab.api_server import ApiServer
from tests.repository import ROOT

DEADLINE_S = 180


class Reader:
    """A person with a shell in the checkout, and a cluster that is the current one."""

    def __init__(
        self,
        home: Path,
        api: ApiServer | None = None,
        variables: Mapping[str, str] | None = None,
        folder: Path = ROOT,
    ) -> None:
        """Start in a folder; the programs see these variables, and no others but the path."""
        self._folder = folder
        programs = [Path(find_tool(name)).parent for name in ("helm", "kubectl")] if api else []
        given = variables or {}
        path = [*programs, Path(sys.executable).parent, given.get("PATH", os.environ["PATH"])]
        self._env = {**given, "PATH": ":".join(map(str, path)), "HOME": str(home)}
        if api:
            self._env["KUBECONFIG"] = str(api.kubeconfig())

    def type(self, lines: str) -> str:
        """Run lines, of which each must succeed; return what they print."""
        ran = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", lines],
            cwd=self._folder,
            env=self._env,
            capture_output=True,
            text=True,
            check=False,
            timeout=DEADLINE_S,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout


def written(page: str, section: str, language: str = "sh") -> list[str]:
    """Return the blocks of a section in a language."""
    text = (ROOT / "docs" / page).read_text()
    (found,) = re.findall(rf"^## {section}\n(.*?)(?:^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return re.findall(rf"^```{language}\n(.*?)^```", found, re.MULTILINE | re.DOTALL)
