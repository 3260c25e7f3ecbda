"""Anybody's table of times or rates, held against arithmetic and against measured cells."""
