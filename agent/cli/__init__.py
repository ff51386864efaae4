"""The command line of the agent.

    main       starts the program: signals and streams first, then the commands
    commands   the commands: once, run, collectors, doctor
    doctor     the checks of a node
    options    the options of commands, and what they open
    output     the output format, and the text output

It may import everything in `agent`.
"""
