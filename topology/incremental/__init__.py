"""A change of few reports applied to the last tree; the result equals a full rebuild.

incremental_tree: the entry point, from claims and the last state to the next state
fabric_update: one changed report in a joined fabric
neighbor_update: the devices that changed neighbor entries name
device_update: the arrays of a fabric, rebuilt around one device
plane_update: the planes of the new fabric
tree_update: the inference, where only host cables moved
group_update: the leaf groups, where only hosts moved
partial_plane: the part of a plane that some hosts are connected to

An update function returns None if it cannot rule out further effects; then the caller rebuilds all.
May import all of the core.
"""
