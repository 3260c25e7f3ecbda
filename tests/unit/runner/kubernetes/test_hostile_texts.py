"""Whatever text a value of a Job is, the rendered Job read back has it in its place, and nothing else is changed."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from job_manifests import CONTAINER, POD, SLOTS, collect_full_values, make_full_profile
from runner.kubernetes.rendering import ANY_NODE, escape_variable, fill_shape, render_shape

# Texts that break out of templates, YAML or Kubernetes' own expansion where a program lets them.
HOSTILE_TEXTS = (
    *("\n", "line\nkey: value\n- item", "\r\n\t ", "{{ profile }}", "{{ 7 * 7 }}{% for x in y %}", "{% raw %}"),
    *("&a *a", "<<: *labels", "!!python/object/apply:os.system [id]", "'", '"', '", "injected": "', "\\"),
    *("$(HOME)", "$$(HOME)", "$$$(HOME)$", "$(BENCH_CELL", "a: b", "a #b", "- ", "? ", "| ", "> ", "---", "..."),
    *("null", "~", "true", "yes", "0x10", "1e3", "012", "1:30", ".inf", "2026-01-01", " leading and trailing "),
    *("\x85", "\u2028\u2029", "\ufeffx\ufeff", "\x01\x07\x1b[2J\x7f\x9f", "\ud7ff\ue000\ufffd\uffff\U0010ffff"),
    "slot-run-id-0000000000000000",
)
texts = (
    st.lists(st.sampled_from(HOSTILE_TEXTS) | st.text(max_size=20), min_size=1, max_size=4).map("".join).filter(bool)
)

FULL = collect_full_values()
FIRST_VALUE = f"{CONTAINER}.env.0.value"
PLACES: dict[str, list[str]] = {
    "store_url": ["$" + f"{CONTAINER}.env.4.value"],
    "image": [f"{CONTAINER}.image", "$" + f"{CONTAINER}.env.5.value"],
    "git_revision": ["$" + f"{CONTAINER}.env.6.value"],
    "queue": [f"{of}metadata.labels.kueue.x-k8s.io/queue-name" for of in ("", "spec.template.")],
    "environment": ["$" + f"{CONTAINER}.env.8.value"],
    "namespace": ["metadata.namespace"],
    "service_account": [f"{POD}.serviceAccountName"],
    "store_secret": [f"{CONTAINER}.envFrom.0.secretRef.name"],
}
"""By the value, or the key of the profile: the paths that hold it; `$`: as a variable, which Kubernetes expands."""
SLOT_PLACES = {
    "job_name": ["metadata.name"],
    "run_id": [
        *(f"{of}metadata.labels.benchmatrix/run-id" for of in ("", "spec.template.")),
        f"{CONTAINER}.env.1.value",
    ],
    "cell_json": [FIRST_VALUE],
}


def walk(value: Any, path: str = "") -> Iterator[tuple[str, object]]:
    if isinstance(value, dict | list):
        for key, child in value.items() if isinstance(value, dict) else enumerate(value):
            yield from walk(child, f"{path}.{key}" if path else str(key))
    else:
        yield path, value


def fill(key: str, text: str) -> dict[str, object]:
    """Return the leaves of a Job by their paths."""
    values, slots, profile = dict(FULL), SLOTS, make_full_profile()
    if key in SLOTS:
        slots = SLOTS | {key: text}
    elif key in FULL:
        values[key] = text
    else:
        value: object = {"MINE": text} if key == "environment" else text
        values["profile"] = profile.model_copy(update={key: value})
    return dict(walk(json.loads(fill_shape(render_shape(values, ANY_NODE, profile=profile), slots))))


@pytest.mark.parametrize("key", [*PLACES, *SLOT_PLACES])
@settings(max_examples=15, deadline=None)
@given(text=texts)
def test_a_text_stays_in_its_place(key: str, text: str) -> None:
    paths = (PLACES | SLOT_PLACES)[key]
    expected = {path.removeprefix("$"): escape_variable(text) if path[0] == "$" else text for path in paths}
    harmless = fill(key, "harmless")
    assert expected.keys() <= harmless.keys()
    assert fill(key, text) == harmless | expected
