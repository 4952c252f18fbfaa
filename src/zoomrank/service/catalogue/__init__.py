"""Collections that are served: their documents, settings and versions.

`settings` of a collection · `served_version` documents in one version of the tree · `version_history` all versions and
the remaps between them · `neighbours` similar queries of a collection · `served_collection` one collection ·
`registry` all of them.
"""
