"""What was sent as a credential is hidden wherever it stands; what is too short for one is not."""

import pytest

from bench.redaction import hide_secrets, is_secret_variable, remember_secret


@pytest.fixture(autouse=True)
def no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.redaction._remembered", set())


def test_credentials_are_hidden_and_the_longest_first() -> None:
    remember_secret("token-1")
    remember_secret("token-1-and-more")
    assert hide_secrets("<T>token-1-and-more</T> token-1") == "<T>(hidden)</T> (hidden)"


VARIABLES = {
    "AWS_SECRET_ACCESS_KEY": "hunter2-here",
    "SLACK_URL": "https://hooks.example/T1",
    "TOKENIZERS_PARALLELISM": "always",
}
PRINTED = (
    "AWS_SECRET_ACCESS_KEY=hunter2-here",
    "signed with hunter2-here.",
    "Looking in indexes: https://user:hunter2-there@index.example/simple",
    "Looking in indexes: https://user:its/hunter2-there@index.example/simple",
    "Looking in indexes: https://user:its@hunter2-there/x@index.example/simple",
    "posted to https://hooks.example/T1",
    # What shows by itself that it is a credential.
    "GET /c?restype=container&sv=2022&sig=hunter2%3D&se=2030 HTTP/1.1",
    "https://bkt.example/x?X-Amz-Signature=hunter2",
    "AccountName=a;AccountKey=hunter2==;EndpointSuffix=core.windows.net",
    "authorization: Bearer hunter2hunter2hunter2",
)


@pytest.mark.parametrize("text", PRINTED)
def test_what_a_program_prints_of_its_credentials_is_hidden(text: str) -> None:
    found = hide_secrets(text, VARIABLES)
    assert "hunter2" not in found
    assert "hooks.example/T1" not in found


@pytest.mark.parametrize(
    "text",
    [
        "TOKENIZERS_PARALLELISM=always",
        "AWS_WEB_IDENTITY_TOKEN_FILE=/var/run/token",
        "token: expired",
        "tokens_per_second: 12345678.12345678",
        "https://a.example:1/x to b@c",
    ],
)
def test_what_a_program_prints_of_other_variables_is_kept(text: str) -> None:
    assert hide_secrets(text, VARIABLES) == text


@pytest.mark.parametrize(
    ("name", "value", "is_secret"),
    [
        ("HTTPS_PROXY", "http://user:its/hunter2@proxy:3128", True),
        ("HTTPS_PROXY", "http://user@proxy:3128", True),
        ("HTTPS_PROXY", "http://proxy:3128", False),
        ("AZURE_STORAGE_CONNECTION_STRING", "x", True),
        ("AZURE_STORAGE_SAS_KEY", "x", True),
        ("GOOGLE_SERVICE_ACCOUNT_KEY", "x", True),
    ],
)
def test_a_variable_is_a_credential_by_its_name_or_its_value(name: str, value: str, is_secret: bool) -> None:
    assert is_secret_variable(name, value) == is_secret
