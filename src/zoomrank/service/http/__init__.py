"""The service over HTTP.

`app` puts it together: `access` what every request passes · `fast_path` for the busiest paths · `routes` all others, by
subject. They share `known_paths`, `schema` (requests), `error_responses`, `asgi` and `metrics`. `page` is the page,
`page_data` and `zoom_tree` what it shows.
"""
