"""Protobuf messages from values, and back.

requests: placement requests.
resources: quantities of resources.
request_documents: placement requests as documents, the inverse of `parse_request`.
parsed_requests: a cache of parsed requests.
answers: placements.
trees: topology trees, their changes, and findings.
pages: pages of long answers and their tokens.

The package imports `generator.placement`, `topology` and the generated messages.
"""
