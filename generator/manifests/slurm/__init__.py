"""Jobs of sbatch as placement requests.

batch_job: `parse_batch_job` reads a command line and a script; `BatchJob.size` returns the request.
component_groups: the groups of pods that a component of a job becomes, on given nodes.
demand: what a component asks for, after all rules by which options complete each other.
component: the options of one component, and the forms of their values.
command_line: words, scripts and environment variables as options.
options: a table of all options: read and how, without effect and why, or what may matter.
loads: what a component takes of nodes, what these have free, and how many tasks they hold.

The package imports the modules of `generator.manifests` about fields, `generator.placement` and
`topology`.
"""
