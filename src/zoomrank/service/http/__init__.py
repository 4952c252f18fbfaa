"""The service over HTTP.

`app` puts it together: `access` what every request passes · `fast_path` for the busiest paths · `routes` all others, by
subject. `time_limits` says how long clients may take. `maker` makes collections of what is sent (`new_collection`), in
a `making_process` if that is much. They share `known_paths`, `schema` (requests), `error_responses`, `asgi` and
`metrics`. `page` is the page, `page_data` and `tree_outline` what it shows.
"""
