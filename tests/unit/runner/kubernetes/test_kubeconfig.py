"""A kubeconfig that is none is refused by file and key, before the official client sees it."""

import os
from pathlib import Path

import pytest

from bench.errors import UserError
from runner.kubernetes.kubeconfig import check_kubeconfig

GOOD = """
apiVersion: v1
kind: Config
current-context: lab
contexts: [{name: lab, context: {cluster: k, user: me}}]
clusters: [{name: k, cluster: {server: "https://127.0.0.1:6443"}}]
users: [{name: me, user: {token: hunter2}}]
"""


@pytest.fixture
def kubeconfig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config"
    monkeypatch.setenv("KUBECONFIG", str(path))
    return path


def test_a_kubeconfig_and_one_that_is_absent_pass(kubeconfig: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_kubeconfig("--on lab")
    kubeconfig.write_text(GOOD)
    check_kubeconfig("--on lab")
    monkeypatch.setenv("KUBECONFIG", f"{kubeconfig}:{kubeconfig}.absent:~nosuchuser/config:")
    check_kubeconfig("--on lab")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xff\xfe\x00", "is not UTF-8 text"),
        (b"- 1\n", "is no kubeconfig"),
        (b"7\n", "is no kubeconfig"),
        (b'!!python/object/apply:os.system ["echo hunter2"]\n', "is no YAML, see line 1"),
        (b"a: [\n", "is no YAML, see line 2"),
        (b"a: " + b"[" * 100_000, "is no YAML"),
        (b"current-context: [1]\n", "current-context: expected the name"),
        (b"contexts: {lab: 1}\n", "contexts: expected a list"),
        (b"contexts: [1]\n", r"contexts\[0\]: expected a mapping with a 'name'"),
        (b"contexts: [{name: 1}]\n", r"contexts\[0\]: expected a mapping with a 'name'"),
        (b"current-context: 0\n", "current-context: expected the name"),
        (b"contexts: 0\n", "contexts: expected a list"),
        (b"contexts: [{name: lab, context: 0}]\n", r"contexts\[0\]\.context: expected a mapping"),
        (b"clusters: [{name: lab, cluster: false}]\n", r"clusters\[0\]\.cluster: expected a mapping"),
        (b"users: [{name: a, user: hunter2}]\n", r"users\[0\]\.user: expected a mapping"),
        (b"clusters: [{name: a, cluster: {server: nonsense}}]\n", r"clusters\[0\]\.cluster\.server: is no URL"),
        (b"clusters: [{name: a, cluster: {server: 7}}]\n", r"clusters\[0\]\.cluster\.server: is no URL"),
        (b'clusters: [{name: a, cluster: {server: "https://h:99999"}}]\n', r"server: is no URL"),
        (b'clusters: [{name: a, cluster: {server: "https://me:hunter2@h:x"}}]\n', r"server: is no URL"),
        (b'clusters: [{name: a, cluster: {server: "https://a..b"}}]\n', r"server: is no URL"),
        (b'clusters: [{name: a, cluster: {server: "https://%b.invalid"}}]\n' % (b"a" * 64), r"server: is no URL"),
        (b'clusters: [{name: a, cluster: {server: "https://a b:9"}}]\n', r"server: is no URL"),
        (b'clusters: [{name: a, cluster: {server: "https://h:9/\\r\\nX: y"}}]\n', r"server: is no URL"),
    ],
)
def test_what_is_no_kubeconfig_is_named_with_its_place(kubeconfig: Path, content: bytes, words: str) -> None:
    kubeconfig.write_bytes(content)
    with pytest.raises(UserError, match=words) as caught:
        check_kubeconfig("--on lab")
    assert str(kubeconfig) in str(caught.value)
    assert "hunter2" not in str(caught.value)


def test_a_pipe_is_not_waited_for(kubeconfig: Path) -> None:
    os.mkfifo(kubeconfig)
    with pytest.raises(UserError, match="is a pipe, a socket or a device"):
        check_kubeconfig("--on lab")


def test_a_key_that_stands_twice_is_refused(kubeconfig: Path) -> None:
    """Which of the two servers would be meant is not for us to say."""
    kubeconfig.write_text("clusters:\n- name: a\n  cluster:\n    server: https://a\n    server: https://b\n")
    with pytest.raises(UserError, match="line 5: the key 'server' stands twice; keep one"):
        check_kubeconfig("--on lab")


def test_what_an_alias_names_is_looked_at_once(kubeconfig: Path) -> None:
    lines = ["a0: &a0 [1]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 12))]
    kubeconfig.write_text("\n".join(lines))
    check_kubeconfig("--on lab")


def test_every_address_that_a_server_can_have_passes(kubeconfig: Path) -> None:
    for server in (
        "http://h",
        "https://10.0.0.1:6443/k8s/clusters/c-1",
        "https://[::1]:9",
        "https://ex\u00e4mple.org.",
    ):
        kubeconfig.write_text(GOOD.replace("https://127.0.0.1:6443", server))
        check_kubeconfig("--on lab", "lab")


@pytest.mark.parametrize(
    ("field", "words"),
    [
        ("tokenFile", "user `me`: tokenFile"),
        ("client-certificate", "user `me`: client-certificate"),
        ("client-key", "user `me`: client-key"),
        ("certificate-authority", "cluster `k`: certificate-authority"),
    ],
)
@pytest.mark.parametrize("target", ["/dev/zero", "pipe", "."])
def test_a_file_of_credentials_that_would_never_end_is_named(
    kubeconfig: Path, field: str, words: str, target: str
) -> None:
    """The client opens it without a look, and the login looked like a program that hangs."""
    os.mkfifo(kubeconfig.parent / "pipe")
    key = "{token" if words.startswith("user") else "{server"
    kubeconfig.write_text(GOOD.replace(key, f"{{{field}: {target}, {key[1:]}"))

    with pytest.raises(UserError, match=rf"--on lab: .*config: {words}: {target}: .*; have it name a file"):
        check_kubeconfig("--on lab", "lab")
    check_kubeconfig("--on other", "other")  # of whom it is not asked for
