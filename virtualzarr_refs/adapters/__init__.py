"""Exchange with packages that have hierarchies of references of their own."""
