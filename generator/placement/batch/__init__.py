"""Place several gangs together: one after the other first, then moved where that helps.

`joint`: places a batch; the entry point.
`sequential`: places gangs one after the other, each on what the earlier ones leave free.
`uniform_gangs`: places equal requests of plain gangs from one rank per leaf.
`members`: the gangs of a placed batch, and how each may be placed again.
`local_search`: tries other orders and domains for a few gangs at a time.
`pack`: packs equal pods into few domains.

May import everything in `placement` but `emulation` and `preset_comparison`.
"""
