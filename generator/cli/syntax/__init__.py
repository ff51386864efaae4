"""The options and the help of every command: one module per word that users type.

Each module has the click command `command`, which passes the values of its options to `run` of the
module of the same name in `generator.cli.commands`. It imports that module when it is called, so
help, completion and errors of usage load neither numpy nor the models of documents.

- fabric: the commands that read a fabric and print it: tree, planes, findings, describe
- hypernodes: the commands about HyperNodes that others wrote: adopt, lint
- reference: explain, schema, completion

`generator.cli.group` imports a module when its command is called. May import
`generator.cli.options`, and modules with closed sets of names that load nothing else.
"""
