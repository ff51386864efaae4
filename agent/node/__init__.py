"""How the agent reads this machine.

    command          runs commands; the only module that starts processes
    sysfs            reads small files below a sysfs root
    unix_sockets     which sockets programs listen on, and why this process may not connect
    mounts           mounts whose source was deleted on the node
    interface_kinds  which network interfaces are the end of a cable
    hcas             which RDMA devices have a port with a cable, and what sweeps open
    pci              PCI functions, and how far a device is from the nearest GPU
    link_flaps       ports that lose their link again and again
    frame_listener   listens for LLDP frames in a thread, and keeps the table of neighbors

It may import `runtime` and `topology`, and nothing else of `agent`.
"""
