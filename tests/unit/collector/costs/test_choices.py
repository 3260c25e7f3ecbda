"""The cheapest for a deadline, the fastest for a budget, and a CPU or a GPU: worked out by hand."""

from typing import Any

import pytest

from collector.costs.document import CellCost, Figure, OfferCost, Rule, answer_cpu_or_gpu, choose
from price_tables import make_price

HOUR = 3600.0


def make_offer(place: str, price: float, seconds: Figure) -> OfferCost:
    """Return a machine with one GPU for `price` per hour, on which the job takes `seconds`."""
    cost = seconds.scale(price / HOUR)
    row = make_price(place, price / HOUR)
    fields: dict[str, Any] = {"row": row, "price_per_hour": price, "cost_per_1000_samples": cost, "cost_of_job": cost}
    return OfferCost.model_construct(**fields)


def make_cost(
    label: str, hours: tuple[float, float | None, float | None], prices: dict[str, float], *, device: str = "gpu"
) -> CellCost:
    """Return a cell whose job of 1,000 samples takes so many hours (value, low, high), with a machine per price."""
    seconds = Figure(value=hours[0], low=hours[1], high=hours[2]).scale(HOUR)
    offers = tuple(make_offer(place, price, seconds) for place, price in prices.items())
    fields: dict[str, Any] = {"cell_id": label, "label": label, "device": device, "hardware": f"a {device}"}
    fields |= dict.fromkeys(("step_seconds", "seconds_per_1000_samples", "seconds_of_job"), seconds)
    fields["num_gpus"] = int(device == "gpu")
    return CellCost.model_construct(**fields, offers=offers)


# 10 h at 1 and 2 per hour: 10 and 20. 4 h at 5: 20. Half an hour to either side.
NONE = (None, None)
SLOW = make_cost("slow", (10.0, 9.5, 10.5), {"a": 1.0, "b": 2.0})
FAST = make_cost("fast", (4.0, 3.5, 4.5), {"c": 5.0})


def test_the_cheapest_that_ends_in_time_at_the_upper_end_of_its_interval() -> None:
    choices = [choose("work", [SLOW, FAST], "deadline", hours * HOUR, "EUR") for hours in (11.0, 10.2, 4.2)]
    found = [(choice.cell_id, choice.place) for choice in choices]
    assert found == [("slow", "X north a"), ("fast", "X north c"), (None, None)]
    assert choices[0].sentence == (
        "work: the cheapest within 11 h is X north a with slow: 10.0 (9.50 to 10.5) h, 10.0 (9.50 to 10.5) EUR"
    )
    assert choices[2].sentence == (
        "work: nothing that was measured and priced is done within 4.2 h; the fastest is X north c with fast: "
        "4.00 (3.50 to 4.50) h, 20.0 (17.5 to 22.5) EUR"
    )


def test_the_fastest_that_costs_no_more_than_the_budget() -> None:
    choices = [choose("work", [SLOW, FAST], "budget", budget, "EUR") for budget in (23.0, 21.0, 10.0)]
    found = [(choice.cell_id, choice.place) for choice in choices]
    assert found == [("fast", "X north c"), ("slow", "X north a"), (None, None)]
    assert choices[2].sentence.startswith(
        "work: nothing that was measured and priced is done for at most 10 EUR; the cheape"
    )


ONCE = make_cost("once", (4.0, None, None), {"d": 1.0})  # 4


@pytest.mark.parametrize("rule", ["deadline", "budget"])
def test_an_amount_without_an_interval_meets_no_limit(rule: Rule) -> None:
    """Fewer repeats, and so no interval, turned "nothing ends within 40 h" into "the cheapest within 40 h"."""
    unit, limit = (HOUR, "within 5 h") if rule == "deadline" else (1.0, "for at most 5 EUR")
    alone = choose("work", [ONCE], rule, 5.0 * unit, "EUR")
    assert (alone.cell_id, alone.place, alone.seconds_of_job, alone.not_known) == (None, None, None, ("once",))
    assert alone.sentence == (
        f"work: nothing that was measured and priced is known to be done {limit}; it is not known, without an "
        "interval, of X north d with once: 4.00 h, 4.00 EUR"
    )
    beyond = choose("work", [ONCE], rule, 3.0 * unit, "EUR")  # the upper end of any interval is beyond it too
    assert (beyond.cell_id, beyond.not_known) == (None, ())
    assert "known" not in beyond.sentence


def test_an_option_without_an_interval_is_named_where_it_would_be_chosen() -> None:
    other = make_cost("other", (4.0, None, None), {"e": 1.5, "f": 6.0})
    choice = choose("work", [SLOW, FAST, ONCE, other], "deadline", 11 * HOUR, "EUR")
    assert (choice.cell_id, choice.not_known) == ("slow", ("once", "other"))
    assert choice.sentence.endswith(
        "; it is not known, without an interval, of X north d with once: 4.00 h, 4.00 EUR, and of 1 more"
    )
    assert choose("work", [FAST, other], "deadline", 5 * HOUR, "EUR").not_known == ("other",)  # on e, not on f


def test_a_cpu_node_is_the_cheaper_answer_where_the_interval_says_so() -> None:
    gpu = make_cost("gpu", (1.0, 0.9, 1 / 0.9), {"g": 8.0})
    cpu = make_cost("cpu", (10.0, 9.0, 10 / 0.9), {"n": 0.4}, device="cpu")
    answer = answer_cpu_or_gpu("work", [gpu, cpu], "EUR")
    assert answer is not None
    # 4 against 8; both are known to a factor of 1 / 0.9, together to its power of the square root of two.
    factor = (1 / 0.9) ** (2**0.5)
    assert answer.ratio is not None
    assert answer.verdict == "cpu"
    assert [answer.ratio.value, answer.ratio.low, answer.ratio.high] == pytest.approx([0.5, 0.5 / factor, 0.5 * factor])
    # For 8 in the 10 hours that the CPU takes.
    assert answer.break_even_price_per_hour is not None
    assert answer.break_even_price_per_hour.value == pytest.approx(0.8)
    assert answer.sentence.startswith(
        "work: a CPU node is cheaper: X north n costs 0.500 (0.431 to 0.580) times as much as X north g;"
    )


@pytest.mark.parametrize(("price", "verdict"), [(0.81, "undecided"), (1.6, "gpu")])
def test_the_answer_needs_an_interval_that_excludes_1(price: float, verdict: str) -> None:
    gpu = make_cost("gpu", (1.0, 0.9, 1 / 0.9), {"g": 8.0})
    cpu = make_cost("cpu", (10.0, 9.0, 10 / 0.9), {"n": price}, device="cpu")
    answer = answer_cpu_or_gpu("work", [gpu, cpu], "EUR")
    assert answer is not None
    assert answer.verdict == verdict


def test_a_cpu_without_a_price_has_a_break_even() -> None:
    gpu, cpu = make_cost("gpu", (1.0, 1.0, 1.0), {"g": 8.0}), make_cost("cpu", (10.0, 10.0, 10.0), {}, device="cpu")
    answer = answer_cpu_or_gpu("work", [gpu, cpu], "EUR")
    assert answer is not None
    assert (answer.verdict, answer.ratio) == ("not priced", None)
    assert "a node with a cpu is the cheaper answer where it costs below 0.800 (0.800 to 0.800) EUR" in answer.sentence
    unpriced = answer_cpu_or_gpu("work", [make_cost("gpu", (1.0, 1.0, 1.0), {}), cpu], "EUR")
    assert unpriced is not None
    assert unpriced.break_even_price_per_hour is None
    assert answer_cpu_or_gpu("work", [gpu], "EUR") is None
