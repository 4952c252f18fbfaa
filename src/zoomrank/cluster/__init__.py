"""The service on several machines: Ray Serve starts, replaces and reaches replicas; PostgreSQL says who owns what.

Nothing below knows of Ray: what a replica does with others is `zoomrank.service.membership`, and how a request finds
the one whose it is `zoomrank.service.http.passing`.
"""
