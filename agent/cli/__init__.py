"""The command line of the agent.

    main           starts the program: signals and streams first, then the commands
    commands       the commands: once, run, collectors, doctor
    doctor         the checks of a node
    run_options    the options of `run` alone
    node_options   the options that every command takes, and the node made of them
    kube_options   the options of a cluster, and the API clients made of them
    output         the output format, and the text output
    options        makes click options of the settings that declare them

It may import everything in `agent`.
"""
