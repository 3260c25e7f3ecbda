"""Answer a scenario's question in sentences: what does most for the money, what is fastest, what it costs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isclose, isnan

from collector.access.choices import Choice
from collector.access.estimates import Figure, Ratio, compare_ratios, estimate_ratio
from collector.access.outcomes import Outcome, compute_energy_cost, compute_fixed_cost
from collector.access.scenario import Scenario
from collector.access.working_time import HOURS_PER_WEEK
from collector.units import format_significant

MAX_TIED = 5
"""Choices that a headline names where none is told apart: more is no sentence, and the tables have all."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The answer: one sentence, and the figures behind it."""

    headline: str
    lines: tuple[str, ...]


def answer_question(scenario: Scenario, outcomes: Sequence[Outcome]) -> Answer:
    """Return which choice within the budget gives most samples for the money and the shortest turnaround."""
    within = [outcome for outcome in outcomes if not is_over_budget(scenario, outcome)]
    costs = [*_describe_costs(scenario, outcomes), *_describe_break_even(scenario, outcomes)]
    known = [outcome for outcome in within if is_comparable(outcome)]
    if not known:
        reason = "within the budget" if scenario.budget_per_week is not None else "for which the weeks give figures"
        return Answer(headline=f"There is no alternative {reason}.", lines=tuple(costs))
    thrifty = _find_best(known, lambda outcome: -outcome.samples_for_money.center)
    fast = _find_best(known, lambda outcome: outcome.turnarounds.center)
    both = [outcome for outcome in thrifty if any(outcome is other for other in fast)]
    thrifty, fast = both or thrifty, both or fast
    money = scenario.currency
    headline = _write_headline([one.choice for one in thrifty], [one.choice for one in fast], money)
    more = _compare(f"Samples per {money}", thrifty[0], known, lambda outcome: outcome.samples_for_money, sign=-1)
    sooner = _compare("Hours from submission to end", fast[0], known, lambda outcome: outcome.turnarounds, sign=1)
    return Answer(headline=headline, lines=(more, sooner, *costs))


def _find_best(known: Sequence[Outcome], measure: Callable[[Outcome], float]) -> list[Outcome]:
    """Return the outcomes with the least figure: several where nothing but their order in the file tells them apart."""
    least = min(map(measure, known))
    return [outcome for outcome in known if isclose(measure(outcome), least)]


def _write_headline(thrifty: Sequence[Choice], fast: Sequence[Choice], money: str) -> str:
    most, shortest = f"most samples per {money}", "the shortest time from submission to end"
    if thrifty == fast and len(fast) > 1:
        return f"None of them is told apart: {_join_names(fast)} give equally {most} and equally {shortest}."
    if len(thrifty) > 1 or len(fast) > 1 or thrifty[0].alternative.name != fast[0].alternative.name:
        gives = "give equally" if len(thrifty) > 1 else "gives"
        equally = "equally " if len(fast) > 1 else ""
        what = f"{_join_names(thrifty)}, {gives} {most}; {_join_names(fast)}, {equally}{shortest}"
        return f"It depends on what counts: {what}."
    if thrifty[0].policy == fast[0].policy:
        return f"{thrifty[0].name}: it gives {most} and {shortest}."
    return f"{thrifty[0].alternative.name}: it gives {most} ({thrifty[0].policy}) and {shortest} ({fast[0].policy})."


def _join_names(choices: Sequence[Choice]) -> str:
    """Return the names in the order of the alphabet: `one, exclusive and two, exclusive`."""
    names = sorted(choice.name for choice in choices)
    more = [f"{len(names) - MAX_TIED} more"] if len(names) > MAX_TIED else []
    return " and ".join([*names[:MAX_TIED], *more])


def is_over_budget(scenario: Scenario, outcome: Outcome) -> bool:
    """Return whether a choice costs more than the budget; where the budget stops jobs, it does not."""
    if scenario.budget_per_week is None or outcome.choice.setting.budget_per_week is not None:
        return False
    return outcome.cost.center > scenario.budget_per_week


def is_comparable(outcome: Outcome) -> bool:
    """Return whether there were jobs, samples and costs to compare."""
    return all(ratio.center > 0 for ratio in (outcome.samples_for_money, outcome.turnarounds))


def _compare(
    subject: str, best: Outcome, known: Sequence[Outcome], find_ratio: Callable[[Outcome], Ratio], *, sign: int
) -> str:
    """Return the figure of the best choice, and how the best policy of each other alternative relates to it.

    Of one alternative alone, how its other policies do.

    `sign` is 1 where less is better, -1 where more is.
    """
    one = len({outcome.choice.alternative.name for outcome in known}) == 1
    others: dict[str, Outcome] = {}
    for outcome in sorted(known, key=lambda outcome: sign * find_ratio(outcome).center):
        others.setdefault(outcome.choice.policy if one else outcome.choice.alternative.name, outcome)
    compared = [
        f"{outcome.choice.name}: {_describe_ratio(compare_ratios(find_ratio(outcome), find_ratio(best)))}"
        for outcome in others.values()
        if outcome is not best
    ]
    figure = format_figure(estimate_ratio(find_ratio(best)))
    return f"{subject}: {best.choice.name} {figure}" + "".join(f"; {text}" for text in compared) + "."


def _describe_ratio(ratio: Figure) -> str:
    words = f"{format_figure(ratio)} times that"
    return f"{words}, which is no difference shown" if ratio.low <= 1 <= ratio.high else words


def _describe_costs(scenario: Scenario, outcomes: Sequence[Outcome]) -> list[str]:
    """Return what each alternative costs a week, from its cheapest policy to its dearest, against the budget."""
    lines = []
    for alternative in scenario.alternatives:
        own = [outcome for outcome in outcomes if outcome.choice.alternative.name == alternative.name]
        amounts = [format_significant(outcome.cost.center) for outcome in sorted(own, key=lambda o: o.cost.center)]
        if not amounts:
            continue
        span = " to ".join(dict.fromkeys((amounts[0], amounts[-1])))
        over = [outcome.choice.policy for outcome in own if is_over_budget(scenario, outcome)]
        verdict = f", over the budget with {', '.join(over)}" if over else ""
        lines.append(f"Cost of {alternative.name}: {span} {scenario.currency} a week{verdict}.")
    return lines


def _describe_break_even(scenario: Scenario, outcomes: Sequence[Outcome]) -> list[str]:
    """Return from how much work on it a bought machine is cheaper than the same work on each rented kind."""
    choices: dict[str, Choice] = {outcome.choice.alternative.name: outcome.choice for outcome in outcomes}
    lines = []
    for bought in (choice for choice in choices.values() if choice.alternative.buy is not None):
        for rented in (choice for choice in choices.values() if choice.price_per_hour is not None):
            hours = compute_break_even_hours(bought, rented)
            if hours is None:
                continue
            most = HOURS_PER_WEEK * bought.alternative.gpus
            words = (
                f"more than the {format_significant(most)} h that there are: rent is cheaper per sample at any use"
                if hours > most
                else f"of {format_significant(most)} h; below that, rent is cheaper per sample"
            )
            lines.append(
                f"Break-even of {bought.alternative.name} with {rented.alternative.name}: "
                f"{format_significant(hours)} h of one job alone on a GPU a week, {words}."
            )
    return lines


def compute_break_even_hours(bought: Choice, rented: Choice) -> float | None:
    """Return at how many hours of work a week a bought machine costs what the same samples cost on rented GPUs.

    Without the hours in which rented GPUs start or are idle, or what interruptions lose. None where the electricity of
    an hour alone costs more than the rent: then there is no such point.
    """
    buy, rented_price = bought.alternative.buy, rented.price_per_hour
    assert buy is not None
    assert rented_price is not None
    fixed = compute_fixed_cost(buy) + compute_energy_cost(buy, 0.0)
    num_hours = HOURS_PER_WEEK * bought.alternative.gpus
    energy_per_hour = (compute_energy_cost(buy, 1.0) - compute_energy_cost(buy, 0.0)) / num_hours
    rent_per_hour = rented_price * bought.samples_per_hour / rented.samples_per_hour
    return fixed / (rent_per_hour - energy_per_hour) if rent_per_hour > energy_per_hour else None


def format_figure(figure: Figure) -> str:
    """Return a figure with its interval: `2.86 (2.43 to 3.29)`; a dash where there is none."""
    if isnan(figure.center):
        return "–"
    center = format_significant(figure.center)
    if isnan(figure.low) or isnan(figure.high):
        return center
    low, high = format_significant(figure.low), format_significant(figure.high)
    return center if low == center == high else f"{center} ({low} to {high})"
