"""Small random requests of every kind, judged by trying every placement.

`draw`: a case from a seed, in the form of a placement vector.
`objective`: the whole objective vector, measured from the key definitions alone.
`search`: every placement of a case, and the best vector.
`judge`: compares the engine's answers under every preset.
`python -m tests.random_cases --seeds 0:50000` tries a range of seeds; it can be resumed anywhere.
"""
