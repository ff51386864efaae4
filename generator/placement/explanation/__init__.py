"""Explain an answer: why a request does not fit, what would fit, and why domains were rejected.

`reasons`: the first applicable reason for an infeasible request.
`alternatives`: small changes of the request that make it feasible.
`verdicts`: chosen, rejected or infeasible, per domain.
`deferred`: a mapping and a sequence that are computed when they are first read.

May import `cluster`, `problem`, `solve`, `answer`, `presets` and `request`.
"""
