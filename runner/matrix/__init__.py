"""Matrix files: reading, expanding and planning them."""
