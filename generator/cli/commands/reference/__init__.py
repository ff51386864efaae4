"""The commands that document Toponaut itself. They read no fabric and no cluster.

- explain: kinds of findings, and fields of objects and files
- schema: JSON schemas; field_docs: the types and descriptions of their fields
- completion: completion scripts of shells

May import `topology`, and what the schemas are made of. `explain` reads the schemas of `schema`.
"""
