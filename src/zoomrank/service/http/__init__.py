"""The service over HTTP.

`app` assembles it: `access` checks every request · `fast_path` serves the busiest paths · `routes` all others, by
subject. `time_limits` limits how long clients may take. `maker` builds collections from uploads (`new_collection`),
large ones in a `making_process`. They share `known_paths`, `schema` (requests), `error_responses`, `asgi` and
`metrics`. `page` is the page; `page_data` and `tree_outline` provide its data.
"""
