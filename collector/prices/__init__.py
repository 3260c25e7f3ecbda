"""What machines cost, what their electricity emits, and how much power they take: tables with a source per row."""
