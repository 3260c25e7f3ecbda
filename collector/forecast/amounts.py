"""Write amounts with their unit and three significant digits."""


def format_amount(value: float, unit: str) -> str:
    """Write an amount, as in `1,230 GB` or `3.2e+25 FLOP`."""
    return f"{format_plain(value)} {unit}".rstrip()


def format_plain(value: float) -> str:
    """Write a number with three significant digits: in full up to a billion, else as a power of ten."""
    rounded = float(f"{value:.3g}")
    if abs(rounded) >= 1e9 or 0 < abs(rounded) < 1e-6:
        return f"{rounded:.2e}"
    return f"{rounded:,.10g}"
