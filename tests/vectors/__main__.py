"""Answer placement vectors: python -m tests.vectors --vectors DIR --out ANSWERS.json."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from tests.vectors.runner import answer_all


@click.command()
@click.option(
    "--vectors",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    required=True,
    help="Folder of *.json files of vectors.",
)
@click.option("--out", type=click.Path(path_type=Path), required=True, help="File to write.")
@click.option("--preset", help="Answer every request with this preset instead of its own.")
def main(vectors: Path, out: Path, preset: str | None) -> None:
    """Answer all vectors."""
    answers: dict[str, Any] = {}
    for path in sorted(vectors.glob("*.json")):
        answers |= answer_all(json.loads(path.read_text(encoding="utf-8")), preset)
    out.write_text(json.dumps(answers, indent=1, sort_keys=True) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
