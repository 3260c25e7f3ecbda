"""Measures how often the interval of a ratio holds the truth where the two sides ran on different cards.

The truth is the ratio over all cards of the kind. benchmarks/interval_coverage.py prints the table.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
from interval_scenarios import draw_card_logs

from collector.statistics import (
    Estimate,
    average_by_machine,
    estimate_center,
    estimate_paired_ratio,
    estimate_ratio,
    measure,
)

FloatArray = npt.NDArray[np.float64]

BETWEEN = 0.01
"""Standard deviation of the logs of the repeats on one card."""
DIFFERENCE = 0.03
"""How far two cards are apart: in log, one from the other, or the standard deviation of such differences."""
FAVOUR = 0.01
"""Standard deviation of the log by which a card favours one of the two cells."""
NUM_SIMULATIONS = 3000


def list_card_lines(rng: np.random.Generator) -> Iterator[str]:
    """Yield the table's lines."""
    yield "| cards, repeats on each | interval from | holds the ratio | half width |"
    yield "|---|---|---|---|"
    for num_repeats in (3, 5):
        own = np.array([0.0]), np.array([DIFFERENCE])
        runs = [
            tuple(draw_card_logs(rng, (1,), num_repeats=num_repeats, cards=cards, between=BETWEEN) for cards in own)
            for _ in range(NUM_SIMULATIONS)
        ]
        name = f"one a side, 3 % apart, {num_repeats} repeats"
        yield format_line(name, "the repeats", [estimate_from_repeats(*sides) for sides in runs])
    for num_cards in (2, 3, 5):
        yield from list_side_lines(rng, num_cards)
    for num_cards in (2, 3, 5):
        yield from list_same_lines(rng, num_cards)
    yield ""


def list_side_lines(rng: np.random.Generator, num_cards: int) -> Iterator[str]:
    """Yield what becomes of different cards on both sides."""
    cards = DIFFERENCE / np.sqrt(2)
    runs = [
        tuple(draw_card_logs(rng, (num_cards,), num_repeats=3, cards=cards, between=BETWEEN) for _ in range(2))
        for _ in range(NUM_SIMULATIONS)
    ]
    name = f"{num_cards} a side, all different, 3 repeats"
    yield format_line(name, "the repeats", [estimate_from_repeats(*sides) for sides in runs])
    yield format_line(name, "the cards", [estimate_from_cards(*sides) for sides in runs])


def list_same_lines(rng: np.random.Generator, num_cards: int) -> Iterator[str]:
    """Yield what becomes of both cells on the same cards, each of which favours one of the cells a little."""
    runs = []
    for _ in range(NUM_SIMULATIONS):
        cards = DIFFERENCE / np.sqrt(2) * rng.standard_normal(num_cards)
        favours = FAVOUR * rng.standard_normal(num_cards)
        runs.append(
            tuple(
                draw_card_logs(rng, (num_cards,), num_repeats=3, cards=levels, between=BETWEEN)
                for levels in (cards, cards + favours)
            )
        )
    name = f"{num_cards}, the same on both sides, 3 repeats"
    yield format_line(name, "the cards, by side", [estimate_from_cards(*sides) for sides in runs])
    yield format_line(name, "the cards, in pairs", [estimate_in_pairs(*sides) for sides in runs])


def estimate_from_repeats(subject: FloatArray, reference: FloatArray) -> Estimate:
    """Return the ratio as if the repeats of all cards were independent; logs of shape (cards, repeats)."""
    return estimate_ratio(*(estimate_center(list(np.exp(logs).ravel())) for logs in (subject, reference)))


def estimate_from_cards(subject: FloatArray, reference: FloatArray) -> Estimate:
    """Return the ratio with the cards of each side as a random effect."""
    return estimate_ratio(
        *(measure(list(np.exp(logs).ravel()), name_cards(logs)).estimate for logs in (subject, reference))
    )


def estimate_in_pairs(subject: FloatArray, reference: FloatArray) -> Estimate:
    """Return the ratio from the ratios on each card."""
    return estimate_paired_ratio(
        *(average_by_machine(list(np.exp(logs).ravel()), name_cards(logs)) for logs in (subject, reference))
    )


def name_cards(logs: FloatArray) -> list[str]:
    return [f"card-{card}" for card in range(logs.shape[0]) for _ in range(logs.shape[1])]


def format_line(name: str, source: str, estimates: list[Estimate]) -> str:
    """Return a line: the share of the intervals that hold 1, which is the truth, and their median half width."""
    intervals = np.array([estimate.interval for estimate in estimates])
    held = ((intervals[:, 0] <= 1) & (intervals[:, 1] >= 1)).mean()
    width = np.median(np.sqrt(intervals[:, 1] / intervals[:, 0]) - 1)
    return f"| {name} | {source} | {100 * held:.0f} % | {100 * width:.1f} % |"
