"""Sources of an InfiniBand fabric, except `ibnetdiscover`.

- ibdiagnet_db: `ibdiagnet2.db_csv`, the tables of ibdiagnet
- ibdiagnet_net_dump: `ibdiagnet2.net_dump`, one line per port of a switch
- subnet_lst: `*.lst` and `*.subnet.lst`, one line per link
- cut_tables: whether a file of ibdiagnet or opensm is cut
- dump_nodes: nodes and ports of a dump, and the devices they make
- node_names: host and HCA names in a node description
- link_rates: the lanes of a width and the speeds of a lane, as each tool writes them
- sysfs: `/sys/class/infiniband` of a node

Imports `topology.model` only.
"""
