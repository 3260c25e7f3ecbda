"""The forecast of GPU memory."""
