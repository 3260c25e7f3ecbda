"""How doctor says to make the Secret of the store."""

import pytest

from runner.kubernetes.doctor.checks import explain_store_secret


@pytest.mark.parametrize(
    ("url", "keys"),
    [
        ("s3://bucket/runs", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"]),
        ("gs://bucket/runs", ["GOOGLE_SERVICE_ACCOUNT_KEY"]),
        ("az://container/runs", ["AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT_KEY"]),
    ],
)
def test_the_keys_are_those_of_the_stores_scheme_and_no_others(url: str, keys: list[str]) -> None:
    hint = explain_store_secret("bench-store", "space", url)
    assert hint.startswith("kubectl create secret generic bench-store --namespace space, ")
    assert [word for word in hint.replace(",", "").split() if word.isupper() and "_" in word] == keys


def test_without_a_store_the_keys_of_all_schemes_are_named() -> None:
    hint = explain_store_secret("bench-store", "space", None)
    assert all(f"{scheme}://: " in hint for scheme in ("s3", "gs", "az"))
