"""Place several gangs together: one after the other first, then moved where that helps.

`joint`: places a batch; the entry point.
`sequential`: places gangs one after the other, each on what the earlier ones leave free.
`uniform_batch`: a fast path for equal requests of plain gangs.
`members`: the gangs of a placed batch, and how each may be placed again.
`local_search`: tries other orders and domains for a few gangs at a time.
`move`: places one gang again beside the others.
`pack_heuristic`: packs equal pods into few domains.
`free_index`: free capacity of nodes or leaves, updated as gangs are placed and removed.

May import everything in `placement` but `emulation` and `preset_comparison`.
"""
