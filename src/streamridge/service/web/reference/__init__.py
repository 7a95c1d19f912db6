"""Pages of reference for people: routes and codes."""
