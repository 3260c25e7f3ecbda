"""Answers of an API server, or of what stands in its place: what cannot be used is an error that names the server."""

from typing import Any

import pytest

from runner.kubernetes.answers import AnswerError, ApiObject, decode_answer, read_items
from runner.kubernetes.api_errors import to_user_error
from runner.kubernetes.object_status import read_job_status

UID = "0b9f3a3c-5d1e-4c6f-9a57-1d2f3c4b5a69"
TIME = "2026-11-22T10:00:00Z"
JOB = f'{{"metadata": {{"name": "a", "uid": "{UID}", "creationTimestamp": "{TIME}"}}, "spec": {{}}}}'


def read_list(items: str) -> list[Any]:
    page = decode_answer(f'{{"metadata": {{}}, "items": {items}}}'.encode())
    return read_items(page, read_job_status, "jobs")


def test_null_is_what_is_absent() -> None:
    """A slice or map of Go without elements can be null in JSON."""
    job = JOB.replace('"spec"', '"status": null, "spec"').replace('"name"', '"labels": null, "name"')

    assert [found.name for found in read_list(f"[{job}]")] == ["a"]
    assert read_list("null") == []
    assert ApiObject(a=None).get("a", 1) == 1


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b"<!DOCTYPE html>\n<html>Log in</html>", "it is an HTML page; see the address of the server"),
        (b"  <HTML>", "it is an HTML page"),
        (b"", "it is no JSON; see"),
        (b"\xff\xfe", "it is no JSON; see"),
        (b"[" * 100_000, "it is no JSON; see"),
        (b"9" * 5_000, "it is no JSON; see"),
        (b"[]", "it is no JSON object"),
        (b"7", "it is no JSON object"),
    ],
    ids=lambda value: repr(value[:12]),
)
def test_an_answer_that_is_no_object_is_told_as_what_it_is(body: bytes, found: str) -> None:
    with pytest.raises(AnswerError) as caught:
        decode_answer(body)
    assert caught.value.message.startswith(f"the API server's answer is none of Kubernetes: {found}")


@pytest.mark.parametrize("part", ["{},", "[],", '"a":1,', "1,"])
def test_an_answer_of_millions_of_tiny_values_is_refused_before_they_are_made(part: str) -> None:
    with pytest.raises(AnswerError, match="none of Kubernetes: too much in it: more than "):
        decode_answer(b'{"metadata": {}, "items": [' + part.encode() * 2_000_000 + b"7]}")


@pytest.mark.parametrize("page", [{}, {"items": []}, {"metadata": ApiObject(), "items": 7}])
def test_what_is_no_list_is_not_taken_for_an_empty_one(page: dict[str, Any]) -> None:
    with pytest.raises(AnswerError, match="it is no list of jobs"):
        read_items(ApiObject(page), read_job_status, "jobs")


@pytest.mark.parametrize(
    ("item", "found"),
    [
        ("null", "one of the jobs has no metadata"),
        ("7", "one of the jobs has no metadata"),
        ('{"metadata": null}', "one of the jobs has no metadata"),
        ('{"metadata": []}', "one of the jobs has no metadata"),
        (JOB.replace(f'"uid": "{UID}", ', ""), "one of the jobs, a: an object has no 'uid'"),
        (JOB.replace(f'"{UID}"', "null"), "one of the jobs, a: an object has no 'uid'"),
        (JOB.replace(UID, "../../x"), "one of the jobs, a: the uid '../../x' is none"),
        (JOB.replace(f'"{UID}"', "7"), "one of the jobs, a: metadata.uid: expected a text, found 7"),
        (JOB.replace('"name": "a", ', ""), "one of the jobs, without a name: metadata.name is missing"),
        (JOB.replace('"spec": {}', '"spec": 7'), "one of the jobs, a: spec: expected an object, found 7"),
        (
            JOB.replace('"spec": {}', '"spec": {}, "status": "x"'),
            "one of the jobs, a: status: expected an object, found 'x'",
        ),
        (
            JOB.replace('"spec": {}', '"spec": {"template": []}'),
            "one of the jobs, a: spec.template: expected an object, found a list",
        ),
        (
            JOB.replace(TIME, "0001-01-01T00:00:00Z"),
            "one of the jobs, a: metadata.creationTimestamp: expected a time between 2000",
        ),
        (JOB.replace(TIME, "2026-11-22"), "one of the jobs, a: metadata.creationTimestamp: expected a time between"),
        (
            JOB.replace(TIME, "yesterday"),
            "one of the jobs, a: metadata.creationTimestamp: expected a time between 2000 and 2100 with its",
        ),
    ],
)
def test_an_object_that_is_not_as_kubernetes_has_it_is_named(item: str, found: str) -> None:
    with pytest.raises(AnswerError) as caught:
        read_list(f"[{item}]")
    assert caught.value.found.startswith(found)


def test_a_wrong_answer_is_told_to_the_user_with_its_cluster_and_not_as_a_missing_permission() -> None:
    message = str(to_user_error(AnswerError("it is no JSON object"), "lab"))
    assert message.startswith("--on lab: the API server's answer is none of Kubernetes: it is no JSON object; ")
    assert "doctor" not in message


def test_halves_of_characters_are_replaced() -> None:
    """JSON can name them, and no terminal, store or document can hold one."""
    body = rb'{"a\ud800": ["\udfff bad", {"b": "\uD83D\uDE00", "c": "\\ud800"}]}'

    assert decode_answer(body) == {"a?": ["? bad", {"b": "\N{GRINNING FACE}", "c": "\\ud800"}]}
