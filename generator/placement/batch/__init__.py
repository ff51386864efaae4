"""Place several gangs together: one after the other first, then moved where that helps.

`joint`: places a batch, gang by gang and then together; the entry point.
`uniform_gangs`: places equal requests of plain gangs from one rank per leaf.
`members`: the gangs of a batch: where they are so far, and how each may be packed or searched.
`local_search`: tries other orders and domains for a few gangs at a time.

May import everything in `placement` but `emulation` and `preset_comparison`.
"""
