"""Protobuf messages from values, and back.

requests: placement requests, and fields that this version does not know.
answers: placements.
trees: topology trees, their changes, and findings.
pages: pages of long answers and their tokens.

The package imports `generator.placement`, `topology` and the generated messages.
"""
