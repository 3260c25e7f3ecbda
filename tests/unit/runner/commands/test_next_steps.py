"""What is said to do next on a cluster: commands that can be given as they stand."""

import shlex

from runner.commands.next_steps import format_place


def test_the_next_command_goes_where_this_one_went() -> None:
    assert format_place("current", None, None) == "--on current"
    words = format_place("gke_team-a", "my profiles/t4.yaml", "team-a", "nightly")
    assert shlex.split(words) == [
        *("--on", "gke_team-a"),
        *("--profile", "my profiles/t4.yaml"),
        *("--namespace", "team-a"),
        *("--queue", "nightly"),
    ]
