"""The service over HTTP: routes, request and response models, access, metrics, the page."""
