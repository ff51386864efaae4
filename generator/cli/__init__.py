"""The command `toponaut`: options, input, printed output and exit codes.

- main: starts the program: signals and streams first, then the command group
- group: the command group, its errors and exit codes, and the config file
- commands: one module per subcommand, named like it
- exit_codes: what each exit code means, and the code of an answer with skipped input
- option_types: types of option values: bounded numbers, files and folders to read
- options: option values with a form of their own (durations, shares)
- kube_options: `--kube`, `--kubeconfig` and `--context`
- source_options: options that name the sources of a fabric
- store_options: the store that a command writes to: a folder or a cluster
- client_options: options to call a running server
- serve_options: options of `toponaut serve`, and the settings made of them
- fabric_options: options that describe a synthetic fabric and its faults
- silence: the option `--silence` and the file that it names
- observation: reads the sources and infers the tree
- plan_input: reads what a plan depends on, and makes the plan
- cluster_input: reads the request and the cluster for `place` and `compare`
- request_input: reads a placement request, or another system's manifest
- input_files: reads a file or stdin, and lists of running gangs
- output: documents, tables, skipped input and counts
- placement_text: a placement answer as text, and as host lists

May import every package of `generator`, and `topology` and `runtime`. No other package imports it.
"""
