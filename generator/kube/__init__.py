"""The generator's client of the Kubernetes API.

    access          which cluster to use; loads no client
    credentials     loads a kubeconfig file or a pod's token, within limits
    transport       sends one request, or opens one watch stream
    resources       the kinds of objects and their paths
    cache           the parsed objects of one kind, within a quota: what was watched, our own writes
    reflector       keeps a cache current: a list in pages, then a watch
    ownership       which part of an object is ours, and whether an apply would change it
    applier         writes objects by server-side apply, with retries and a write limit
    lease_record    the record in a Lease object
    elector         leader election with a Lease, which commands hold too

Only `credentials` and `transport` import the official client. The other modules use
the `Transport` protocol, with plain bytes. The package may import `runtime` and `topology.model`.
"""
