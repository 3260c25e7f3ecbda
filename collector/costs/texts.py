"""Put a document of costs into sentences, for the terminal, the report and Markdown alike."""

from collections.abc import Iterator

from collector.costs.document import CostDocument


def list_answer_lines(document: CostDocument) -> Iterator[str]:
    """Yield the choices for a deadline and a budget, and where a CPU node is the cheaper answer."""
    yield from (choice.sentence for choice in document.choices)
    yield from (answer.sentence for answer in document.cpu_answers)


def list_unpriced_lines(document: CostDocument) -> Iterator[str]:
    """Yield why cells have no price, each reason once with the number of its cells."""
    reasons = [cell.reason for cell in document.cells if cell.reason]
    for reason in dict.fromkeys(reasons):
        number = reasons.count(reason)
        yield f"{number} {'cell' if number == 1 else 'cells'}: {reason}"


def list_basis_lines(document: CostDocument) -> Iterator[str]:
    """Yield what the costs rest on: the prices used with their days and sources, methods of energy, assumptions."""
    yield f"Prices: {document.prices}, in {document.currency}."
    used = {
        (offer.place, f"{offer.machine_price_per_hour:g}", str(offer.price_date), offer.source)
        for cell in document.cells
        for offer in cell.offers[:1]
    }
    for place, price, day, source in sorted(used):
        yield f"{place}: {price} {document.currency} per hour, {day}, {source}"
    methods = {cell.energy.method for cell in document.cells if cell.energy is not None}
    yield from (f"Energy: {method}" for method in sorted(methods))
    if document.job is not None:
        yield f"{document.job.title}: {document.job.num_samples:,} samples, {document.job.source}"
    yield from document.assumptions
