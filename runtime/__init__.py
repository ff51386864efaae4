"""The process plumbing that both programs need.

    logs             log lines on stderr: JSON or text, an event and its fields
    http             the probe-and-metrics server: a few small pages on one thread
    listener         sockets that listen, and a limit of what they accept
    fair_share       slots that callers share
    periodic         jobs that run every period; the only file that imports apscheduler
    program          how a program starts and ends: streams, stop signals, errors of the machine
    stop             a stop request that threads share
    clock            the time of day and monotonic seconds
    checks           the lines of `doctor`: what is wrong, and what mends it
    watch            repeats a command, and prints its output again when it has changed
    progress         how far long work is, for a person who waits for it
    retry            waits: backoff, cooldown between rounds, allowances of tokens
    values           parsers of option values: numbers, durations and HOST:PORT
    options          how a command declares its options
    small_files      reads keys, tokens and settings up to a limit
    lazy_names       public names whose modules are loaded when a name is first used
    process_settings settings of the interpreter, the C library, and other libraries
    transition_log   logs problems when they appear and when they are gone

It may import the standard library, apscheduler, prometheus_client and `topology.model.errors`, and
`options` imports click; it stays free of numpy, grpc and kubernetes, so that the agent stays
light.
"""
