"""The collectors of the agent, one module per source of facts.

    probe           the interface of a collector, and the facts that it returns
    net_sysfs       Ethernet ports from `/sys/class/net`
    ib_sysfs        HCAs and their ports from `/sys/class/infiniband`
    lldpd           LLDP neighbors from a running lldpd
    frames          LLDP neighbors from frames that the agent receives itself
    firmware_lldp   cards whose firmware consumes LLDP frames, from ethtool
    nvlink          the NVLink domain of the GPUs, from nvidia-smi
    ib_sweep        whole InfiniBand subnets, from ibnetdiscover

Collectors do not import each other; they may import `agent.node`, `agent.settings` and `topology`.
"""
