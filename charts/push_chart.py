"""Package the chart and push it to a container registry as an OCI artifact, with Helm's own engine.

    python charts/push_chart.py HOST/PROJECT/REPOSITORY [--plain-http]

Name and version are those of Chart.yaml. A version that is there is never replaced. Credentials are those of `helm
registry login` or `docker login`.
"""

import argparse
import sys
import tempfile
from pathlib import Path

import helm_python
import yaml

CHART = Path(__file__).parent / "benchmatrix"


class PushError(Exception):
    """The chart cannot be pushed: the message says why, and how to mend it."""


def push_chart(registry: str, *, chart: Path = CHART, plain_http: bool = False) -> str:
    """Push the chart below `registry` (HOST/PROJECT/REPOSITORY) and return its reference, `oci://...:VERSION@DIGEST`.

    Raise PushError if the version is there, or the registry refuses.
    """
    metadata = yaml.safe_load((chart / "Chart.yaml").read_text(encoding="utf-8"))
    version, url = metadata["version"], f"oci://{registry}/{metadata['name']}"
    try:
        with tempfile.TemporaryDirectory() as folder, helm_python.RegistryClient(plain_http=plain_http) as client:
            if version in list_versions(client, url):
                raise PushError(
                    f"{url}: version {version} is there, and a version never changes; raise `version` in "
                    f"{chart.name}/Chart.yaml"
                )
            archive = helm_python.package(chart, destination=folder)
            client.push(archive, f"oci://{registry}", plain_http=plain_http)
            return f"{url}:{version}@{client.resolve(f'{url}:{version}')['digest']}"
    except helm_python.HelmError as error:
        raise PushError(f"{url}: {' '.join(str(error).split())}; see docs/images.md for how to log in") from error


def list_versions(client: helm_python.RegistryClient, url: str) -> list[str]:
    """Return the versions of the chart in the registry; none where it has no such repository yet."""
    try:
        return client.tags(url)
    except helm_python.HelmRegistryError as error:
        # https://github.com/opencontainers/distribution-spec/blob/main/spec.md#error-codes
        if "status code 404" in str(error):
            return []
        raise


def main() -> None:
    """Push the chart and print what Helm, Argo CD and Flux take; exit with 2 where that fails."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("registry", help="HOST/PROJECT/REPOSITORY, without oci://")
    parser.add_argument("--plain-http", action="store_true", help="for a registry without TLS, on this machine")
    options = parser.parse_args()
    try:
        pushed = push_chart(options.registry.removeprefix("oci://").rstrip("/"), plain_http=options.plain_http)
    except PushError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    print(f"pushed: {pushed}")


if __name__ == "__main__":
    main()
