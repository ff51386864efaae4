"""`toponaut reservations`: lists the objects of a folder while a server may write it."""

from datetime import timedelta
from pathlib import Path

import pytest

from generator.cli.exit_codes import ExitCode
from generator.reservations.ledger import ReservationLedger
from runtime.clock import utc_now
from tests.generator.reservations.test_objects import open_store
from tests.generator.reservations.worlds import PLENTY_S, cluster, id_of, reservation_request
from tests.generator.scenes import run


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Three reservations: confirmed, reserved, and expired."""
    ledger = ReservationLedger(open_store(tmp_path), now=utc_now, clock=lambda: 0.0)
    ledger.publish(cluster())
    ledger.reserve(reservation_request(1, gang="ns/a", count=5, holder="alice"), budget_s=PLENTY_S)
    ledger.confirm(id_of(1), holder="alice")
    ledger.reserve(reservation_request(2, gang="ns/b"), budget_s=PLENTY_S)
    late = ReservationLedger(
        open_store(tmp_path),
        now=lambda: utc_now() - timedelta(hours=1),
        clock=lambda: 0.0,
    )
    late.publish(cluster())
    late.reserve(reservation_request(3, gang="ns/c", count=1), budget_s=PLENTY_S)
    return tmp_path


def test_it_lists_active_reservations(store: Path) -> None:
    ran = run("reservations", "--store", str(store), "-o", "text")
    assert ran.code == ExitCode.OK, ran.err
    head, *rows = ran.out.splitlines()
    assert head.split() == ["RESERVATION", "GANG", "PHASE", "PODS", "NODES", "UNTIL", "HOLDER"]
    assert [row.split()[:4] for row in rows] == [
        [id_of(1), "ns/a", "confirmed", "5"],
        [id_of(2), "ns/b", "reserved", "4"],
    ]
    assert rows[0].split()[-2:] == ["released", "alice"]


def test_it_prints_objects(store: Path) -> None:
    ran = run("reservations", "--store", str(store), "--all", "-o", "json")
    assert [row["status"]["phase"] for row in ran.document] == ["confirmed", "reserved", "expired"]
    assert {row["kind"] for row in ran.document} == {"PlacementReservation"}


def test_it_reports_no_reservations(tmp_path: Path) -> None:
    ran = run("reservations", "--store", str(tmp_path), "-o", "text")
    assert (ran.code, ran.out) == (ExitCode.OK, "no reservations\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "words",
    [
        pytest.param([], id="no source"),
        pytest.param(["--store", ".", "--kube"], id="two sources"),
    ],
)
def test_it_expects_one_source_not(words: list[str]) -> None:
    ran = run("reservations", *words)
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert "either --store or --kube" in ran.err


def test_it_refuses_a_context_without_a_cluster() -> None:
    ran = run("reservations", "--store", ".", "--context", "c")
    assert (ran.code, ran.out) == (ExitCode.USAGE, "")
    assert "--kubeconfig and --context need --kube" in ran.err


def test_it_reports_an_unusable_file(tmp_path: Path) -> None:
    (tmp_path / "reservations.sqlite").write_text("notes")
    ran = run("reservations", "--store", str(tmp_path))
    assert (ran.code, ran.out) == (ExitCode.NOTHING, "")
    assert "not a database" in ran.err
