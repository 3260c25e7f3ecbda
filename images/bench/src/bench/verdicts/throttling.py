"""Checks that nothing held the threads back: throttled, by the CPU's quota."""

from bench.verdicts.inputs import Found, ValidityInputs

# throttled. Time that threads stood still because the CPU quota was used up, over the time they had. Not the share of
# periods that were cut: as many busy threads as the quota has cores run into it in every period, for an instant.
MAX_THROTTLED_SHARE = 0.05


def check_quota(inputs: ValidityInputs) -> Found:
    """Yield throttled where the CPU quota stopped the threads."""
    use = inputs.cpu_use
    if use is None or use.throttled_seconds is None:
        return
    share = use.throttled_seconds / (use.window_seconds * inputs.num_threads)
    if share > MAX_THROTTLED_SHARE:
        yield (
            "throttled",
            f"the CPU quota stopped the threads for {share:.0%} of their time, more than {MAX_THROTTLED_SHARE:.0%} "
            f"(in {use.num_throttled_periods} of {use.num_periods} periods)",
        )
