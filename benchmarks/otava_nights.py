"""Asks apache-otava for the first alarm of each series on stdin; run by benchmarks/other_methods.py.

It needs an environment of its own: apache-otava 0.8 requires numpy 2.2.0 and clients of Slack and BigQuery.
"""

import json
import sys

import numpy as np


def main() -> None:
    """Read series of logs as JSON from stdin and write the night of each one's first alarm, -1 for none, to stdout."""
    from otava.analysis import compute_change_points

    question = json.load(sys.stdin)
    firsts = []
    for row in question["logs"]:
        times, first = np.exp(row), -1
        for night in range(question["first_look"], len(times) + 1):
            found, _ = compute_change_points(
                [float(time) for time in times[:night]],
                window_len=50,
                max_pvalue=question["p_value"],
                min_magnitude=question["floor"],
            )
            if found and found[-1].stats.mean_2 > found[-1].stats.mean_1:
                first = night - 1
                break
        firsts.append(first)
    json.dump(firsts, sys.stdout)


if __name__ == "__main__":
    main()
