"""Reservations: nodes held for a gang until its pods run on them, or until the time is up.

records: reservations, requests, refusals and totals as values; PlacementReservation objects.
phases: the phases of a reservation, the steps between them and the limits of a request.
nominations: the held nodes as nominations, minus the pods that are bound already; what is due.
ledger: `ReservationLedger` places, writes and publishes reservations.
objects: reservations as objects of a folder or a cluster, with the epoch of the leader.
legacy_sqlite: the file in which earlier versions kept the reservations of a folder.
cluster_view: reads the reservations of a cluster once, for commands.

`records`, `phases` and `nominations` are pure. The package imports
`generator.objects` and `generator.placement`; `objects`, `legacy_sqlite` and
`cluster_view` import `generator.kube` and `generator.store`.
"""
