"""One attempt at a cell, from the request in the environment to the record in the store."""
