"""The stores of the generator: a folder and a cluster behind one interface.

    kinds               the kinds of objects, and the value that is kept of each
    object_store        the interface of a store of objects
    folder_store        a folder with one file per object
    cluster_store       a cluster's objects, listed once or followed
    fabric_store        the objects of one fabric: what is read, the rules of each write, and the
                        retry after a conflict
    object_folders      reads any folder of object files
    object_files        reads and writes object files with limits, atomically
    folder_lock         one writer per folder, and unfinished files
    sqlite_file         SQLite files: opened, checked, written in transactions
    local_files         reads local files, such as the inventory of nodes, also packed by gzip
    history_object      the part of the history that a cluster keeps
    file_kinds          what a file is, if it is not what was expected

It may import `generator.kube`, `generator.objects`, `generator.outputs` and `topology`.
"""
