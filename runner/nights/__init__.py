"""What follows a night: looking at it, measuring again what is suspected, telling what is confirmed."""
