"""The command `toponaut`: options, input, printed output and exit codes.

- main: starts the program: signals and streams first, then the command group
- group: the command group, its errors and exit codes, and the config file
- syntax: the options and the help of each command, one module per command, named like it
- commands: what each command does, in modules of the same names
- options: options that several commands share
- exit_codes: what each exit code means, and the end of a command
- connection_values, source_values: the cluster, the server and the sources that options name
- serve_values, fabric_values: the settings of a server, and a synthetic fabric, from options
- store_access: the store that a command writes to: a folder or a cluster
- history_access: the history that a command reads
- silence_file: the file that `--silence` names
- observation: reads the sources and infers the tree
- plan_input: reads what a plan depends on, and makes the plan
- cluster_input: reads the request and the cluster for `place` and `compare`
- request_input: reads a placement request, or another system's manifest
- input_files: reads a file or stdin, and lists of running gangs
- output: documents, tables, skipped input and counts
- placement_text: a placement answer as text, and as host lists

May import every package of `generator`, and `topology` and `runtime`. No other package imports it.
"""
