"""The service on several machines: all that knows of replicas.

Ray Serve starts and replaces replicas (`deployment`, `replica`); PostgreSQL has the leases on partitions (`leases`),
which every write checks (`shared_database`). Each replica takes its share of them (`membership`, `ownership`), applies
the changes of others (`replica_sync`), and forwards requests to the owner of their partition (`forwarding`,
`peer_server`). It imports the service, which knows nothing of it: an engine is given an `Ownership`, and an application
a list of replicas.
"""
