"""What was sent as a credential is hidden wherever it stands; what is too short for one is not."""

import pytest

from bench.known_secrets import hide_secrets, remember_secret


@pytest.fixture(autouse=True)
def no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.known_secrets._secrets", set())


def test_credentials_are_hidden_and_the_longest_first() -> None:
    remember_secret("token-1")
    remember_secret("token-1-and-more")
    assert hide_secrets("<T>token-1-and-more</T> token-1") == "<T>(hidden)</T> (hidden)"


@pytest.mark.parametrize("value", [None, "", "test", 123456789])
def test_what_is_no_credential_is_left(value: object) -> None:
    remember_secret(value)
    assert hide_secrets("a test of 123456789") == "a test of 123456789"
