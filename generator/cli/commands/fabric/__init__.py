"""The words about a fabric: its tree, networks, findings, devices, cables and past.

- status: the state on one screen
- tree, planes, findings, describe, links, path: what the sources show
- diff, history: what differs from a plan, from labels, or from an earlier time
- switches: walks switches by SNMP; inspect: the content of files
"""
