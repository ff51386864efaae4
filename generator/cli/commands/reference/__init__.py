"""The words that document Toponaut itself. They read no fabric and no cluster.

- explain: kinds of findings, and fields of objects and files
- completion: completion scripts of shells
- schema: JSON schemas
"""
