"""How the agent reads this machine.

    command          runs commands; the only module that starts processes
    sysfs            reads small files below a sysfs root
    socket_access    why this process may not connect to a socket
    unix_sockets     the sockets on which programs of this network namespace listen
    interface_kinds  which network interfaces are the end of a cable
    hcas             which RDMA devices have a port with a cable
    pci              PCI addresses, and how far a device is from the nearest GPU
    link_flaps       ports that lose their link again and again
    frame_listener   listens for LLDP frames in a thread, and keeps the table of neighbors

It may import `runtime` and `topology`, and nothing else of `agent`.
"""
