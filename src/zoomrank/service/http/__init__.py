"""The service over HTTP.

`app` assembles it: `access` checks every request · `fast_path` serves the busiest paths · `routes` all others, by
subject. `listener` has the sockets, and limits how long clients may take. `builder` builds collections from uploads,
large ones in a `builder_process`. `schema` has the bodies of requests, `metrics` those for Prometheus. `page` is the
page; `page_data` and `page_details` provide its data.
"""
