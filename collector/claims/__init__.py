"""The study's claims, evaluated against measurements."""
