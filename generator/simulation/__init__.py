"""Synthetic fabrics, and the tests of Toponaut on them.

- fabric_files: the files of a synthetic fabric: reports, sweeps, sysfs and the true tree
- fabric_words: the command-line options of a fabric and its faults
- run_names: names of sizes, losses and mixes of sources
- source_mixes: the sources of a damaged fabric, packed as the commands hold them
- verify: compares the inferred tree of a damaged fabric with the true tree
- verify_grid: the fabrics and faults of `toponaut verify`, and its results
- verify_runs: runs the scenarios in several processes, with a journal
- replay: replays a trace of jobs to compare placement strategies

Imports `generator.jobs`, `generator.placement` and `topology`.
"""
