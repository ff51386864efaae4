"""The command `toponaut`: options, input, printed output and exit codes.

- main: starts the program: signals and streams first, then the command group
- group: the command group, its errors and exit codes; config_file: values of options from a file
- commands: one module per word that users type: its options, its help, what it does and its rows
- options: options that several commands share; option_types: the types of option values
- exit_codes: what each exit code means, and the end of a command
- host_lists: nodes in the order of ranks, for MPI and Slurm
- output: documents, tables, skipped input, counts and progress
- observation: reads the sources and infers the tree
- plans: reads what a plan depends on; makes, prints and writes the plan
- fabric_outputs: the state of each output in the Fabric object, as rows
- cluster_input: reads the request and the cluster for `place` and `compare`
- request_input: reads a placement request, or another system's manifest
- running_pods: pods and gangs that run
- history_access: the history that a command reads; silence_file: the file that `--silence` names
- work_orders: the options of a work order, the racks of devices, and its print
- witnesses: labels or HyperNodes compared with the cables, as rows
- schemas: the JSON schemas of documents, and their fields

May import every package of `generator`, and `topology` and `runtime`. No other package imports it.
`toponaut --help` loads no command; the help of a command, completion and errors of usage load
neither numpy nor the models of documents. So every import that is heavy stands inside the function
that needs it.
"""
