"""The chart refuses credentials among its values, and repeats none."""

import json
import re
from typing import Any

import helm_python
import pytest

from bench.redaction import is_secret_variable
from chart import make_overlay, make_values, render

PRIVATE_KEY = "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"runner__environment": {"AZURE_STORAGE_ACCOUNT_KEY": "hunter2"}}, "runner.environment.AZURE_STORAGE_ACCOUNT"),
        (
            {"runner__environment": {"HTTPS_PROXY": "http://me:hunter2@proxy:3128"}},
            "runner.environment.HTTPS_PROXY: is",
        ),
        ({"profile__environment": {"hf_token": "hunter2"}}, "profile.environment.hf_token: is a credential"),
        (
            {"runner__overlay": make_overlay(env=[{"name": "AWS_SECRET_ACCESS_KEY", "value": "hunter2"}])},
            "runner.overlay.spec.containers[0].env",
        ),
        (
            {"profile__overlay": make_overlay(env=[{"name": "AWS_SECRET_ACCESS_KEY", "value": "hunter2"}])},
            "profile.overlay.spec.containers[0]",
        ),
        ({"store__endpointUrl": "https://me:hunter2@minio.example"}, "store.endpointUrl: has a user or a password"),
        ({"image__repository": "me:hunter2@registry.example/control"}, "image.repository: has an `@`"),
        ({"store__url": "s3://me:hunter2@bucket/prefix"}, "store.url: has a user or a password"),
    ],
    ids=lambda value: json.dumps(value) if isinstance(value, dict) else "",
)
def test_a_credential_is_refused_and_not_repeated(changes: dict[str, Any], place: str) -> None:
    with pytest.raises(helm_python.HelmError, match=re.escape(place)) as caught:
        render(make_values(**changes))
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HTTPS_PROXY", "http://proxy.example:3128"),
        ("TOKENIZERS_PARALLELISM", "false"),
        ("AWS_WEB_IDENTITY_TOKEN_FILE", "/var/run/token"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/var/run/config.json"),
        ("GOOGLE_SERVICE_ACCOUNT_KEY", "x"),
        ("PASSPHRASE_DIR", "/x"),
        ("azure_storage_sas_key", "x"),
        ("PLAIN", "AccountName=a;AccountKey=x=="),
        ("PLAIN", "https://a.example/c?sv=1&sig=x"),
        ("PLAIN", "Authorization: Bearer 0123456789abcdef"),
        ("PLAIN", "Bearer token"),
        ("PLAIN", "design=x"),
        ("PLAIN", PRIVATE_KEY),
    ],
)
def test_the_chart_knows_the_credentials_that_a_profile_refuses(name: str, value: str) -> None:
    values = make_values(runner__environment={name: value})
    if is_secret_variable(name, value):
        with pytest.raises(helm_python.HelmRenderError, match="is a credential"):
            render(values)
    else:
        assert render(values)


@pytest.mark.parametrize(
    "overlay", [{}, None, {"spec": {"containers": "x"}}, {"spec": {"containers": [1, {"env": {}}]}}]
)
def test_an_overlay_of_another_shape_is_left_to_the_reader_of_the_profile(overlay: Any) -> None:
    assert render(make_values(profile__overlay=overlay))
