"""The commands that read a fabric and print what it shows.

- tree: the tree; tree_text: its domains as lines with marks; output_text: the state of the outputs
- findings: what is wrong; finding_text: the summary and a row for each cause; finding_history: what
  is new, lasting and gone
- describe: all that is known about one device, port or domain; descriptions: the documents;
  running_jobs: the gangs on its nodes
- planes: the networks, and the ports of each

May import what commands share, and `topology`.
"""
