"""Fuzzing of the commands: foreign inputs that are nearly right, and what must hold whatever they are."""
