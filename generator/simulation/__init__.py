"""Synthetic fabrics as files, and replays of job traces.

- fabric_files: the files of a synthetic fabric: reports, sweeps, sysfs and the true tree
- replay: replays a trace of jobs to compare placement strategies

Imports `generator.jobs`, `generator.placement` and `topology`.
"""
