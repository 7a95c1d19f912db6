"""The service over HTTP: routes, who may use them, events, and the page."""
