"""Signatures of documents in the store: made on request with the user's key, checked by whoever has its public half."""
