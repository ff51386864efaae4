"""The command line of the agent.

    main           the commands: once, run, collectors
    run_options    the options of `run` alone
    node_options   the options that every command takes, and the node made of them
    kube_options   the options of a cluster, and the API server that they lead to
    output         the form of the output, and its text for people
    options        click options made of the settings that declare them

It may import everything in `agent`.
"""
