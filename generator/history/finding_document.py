"""Findings to JSON, as `toponaut findings -o json` prints them, and back. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from topology.model.errors import ConfigError, show
from topology.model.facts import Finding, FindingKind, PortName, Severity, render_finding


def encode_finding(finding: Finding) -> str:
    """Return the finding as one line of JSON; equal findings give equal texts."""
    return json.dumps(render_finding(finding), separators=(",", ":"), sort_keys=True)


def decode_finding(text: str) -> Finding:
    """Return the finding of a text that `encode_finding` wrote.

    Raises:
        ConfigError: it is not a finding, or one of a later version.
    """
    try:
        document = json.loads(text)
        subject, evidence = document["subject"], document["evidence"]
        return Finding(
            FindingKind(document["kind"]),
            str(subject["device"]),
            None if subject["port"] is None else str(subject["port"]),
            severity=Severity(document["severity"]),
            message=str(document["message"]),
            ports=tuple(map(_build_port, evidence["ports"])),
            swap=tuple((_build_port(one), _build_port(other)) for one, other in evidence["swap"]),
            since=document["since"],
        )
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise ConfigError(f"not a finding: {show(str(error))}") from error


def _build_port(row: Mapping[str, Any]) -> PortName:
    return PortName(str(row["device"]), str(row["port"]))
