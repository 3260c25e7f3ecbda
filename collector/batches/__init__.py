"""Memory against batch size, from measured cells, and the largest batch that fits a card."""
