"""The commands of `toponaut simulate`: simulated fabrics as files, and jobs replayed on fabrics.

- fabric_folder: writes a simulated fabric
- replayed_jobs: replays a trace under several presets

May import `generator.simulation` and what it imports.
"""
