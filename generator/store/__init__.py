"""The stores of the generator, for reports, HyperNodes and the Fabric object: cluster or folder.

    base                the interface of a store that a server uses, and the values that it returns
    cluster             a cluster's objects, read and written with one request each
    listed_objects      lists of objects as the values that a store returns
    followed_cluster    a cluster's objects, kept current by watches
    directory           a folder with one file per object
    watched_directory   a folder, read again when its files change
    reporter_names      the names of reports in a folder, as the list of nodes gives them
    object_files        reads and writes object files with limits, atomically
    folder_lock         one writer per folder, and unfinished files
    sqlite_file         SQLite files: opened, checked, written in transactions
    local_files         reads local files, such as the inventory of nodes
    history_object      the part of the history that a cluster keeps
    file_kinds          what a file is, if it is not what was expected
    packed_bytes        unpacks gzip in bounded memory
    own_writes          our writes that a watch has not reported yet
    write_conflicts     writes again if an object changed in between
    interned_reports    parses reports so that equal parts share memory

It may import `generator.kube`, `generator.objects`, `generator.outputs` and `topology`.
"""
