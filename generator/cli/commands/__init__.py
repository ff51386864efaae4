"""What users type: one module per word, with its options, its help, what it does and its rows.

Each module has the click command `command`. Help, completion and errors of usage load a module, so
it imports numpy, models of documents, clients and servers inside the functions that need them.

- fabric: a fabric: its tree, networks, findings, devices, cables and past
- outputs: what is written for schedulers
- gangs: where gangs run
- programs: servers, checks of a cluster, and simulations
- reference: what documents Toponaut itself

May import `generator.cli` and what it imports.
"""

from typing import Final

WORDS: Final = {
    "fabric": {
        "status": "Print the state of the fabric on one screen.",
        "tree": "Print the tree inferred from the cabling.",
        "planes": "List the networks, and the ports of each.",
        "findings": "List what is wrong with the cabling, and what to do.",
        "describe": "Show all that is known about a node, a switch, a domain or a gang.",
        "links": "List every cable with both ends.",
        "path": "Show the ways between two nodes, and the faults on them.",
        "diff": "Compare the fabric with a cabling plan or with its past.",
        "history": "List when the tree changed, and what changed.",
        "switches": "Walk switches by SNMP, and report their neighbors.",
        "inspect": "Show the content of files: format, counts, bad lines.",
    },
    "outputs": {
        "plan": "Print what apply would change, in order.",
        "apply": "Write the HyperNodes of the tree.",
        "approve": "Approve a plan that is held because it is too large.",
        "lint": "List what makes Volcano crash or stall in a set of HyperNodes.",
        "adopt": "Take over HyperNodes that others wrote, under approval.",
        "export": "Print the tree in the format of a scheduler or another tool.",
    },
    "gangs": {
        "place": "Place a gang, or say why it does not fit.",
        "compare": "Place a gang under each preset, and compare the results.",
        "where": "Show where a job runs, and a better place.",
        "ranks": "Compare the ranks of a job with the tree, and print a better order.",
        "capacity": "Show what is free in each domain.",
        "reservations": "List the nodes reserved for gangs whose pods do not run yet.",
    },
    "programs": {
        "rpc": "Call any method of a server, with JSON or YAML.",
        "serve": "Keep HyperNodes correct and answer placement queries.",
        "simulate": "Simulate fabrics, and replay jobs on fabrics.",
        "doctor": "Check that a cluster, or this machine, has all that Toponaut needs.",
    },
    "reference": {
        "explain": "Explain a kind of finding, or a field of an object or file.",
        "completion": "Print the completion script of a shell.",
        "schema": "Print a JSON schema of a document.",
    },
}
"""The words of each package in the order of `toponaut --help`, each with its line there."""
