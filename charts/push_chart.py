"""Package the chart and push it to a container registry as an OCI artifact, with Helm's own engine.

    python charts/push_chart.py HOST/PROJECT/REPOSITORY [--plain-http]

Name and version are those of Chart.yaml. A version that is there is never replaced. Credentials are those of `helm
registry login` or `docker login`.
"""

import argparse
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

import helm_python
import yaml

CHART = Path(__file__).parent / "benchmatrix"


class PushError(Exception):
    """The chart cannot be pushed: the message says why, and how to mend it."""


@dataclass(frozen=True, kw_only=True)
class PushedChart:
    """Where a chart is in a registry."""

    url: str
    """`oci://HOST/PROJECT/REPOSITORY/benchmatrix`, for Helm and Argo CD and Flux."""
    version: str
    digest: str
    is_new: bool
    """False: this version was there before, with the same files."""


def push_chart(registry: str, *, chart: Path = CHART, plain_http: bool = False) -> PushedChart:
    """Push the chart below `registry` (HOST/PROJECT/REPOSITORY) unless its version is there with the same files.

    Raise PushError if the version is there with other files, or the registry refuses.
    """
    metadata = yaml.safe_load((chart / "Chart.yaml").read_text(encoding="utf-8"))
    version = metadata["version"]
    url = f"oci://{registry}/{metadata['name']}"
    try:
        with (
            tempfile.TemporaryDirectory() as folder,
            helm_python.RegistryClient(plain_http=plain_http) as client,
        ):
            archive = Path(helm_python.package(chart, destination=folder))
            is_new = version not in list_versions(client, url)
            if is_new:
                client.push(archive, f"oci://{registry}", plain_http=plain_http)
            pulled = Path(folder) / "pulled"
            pulled.mkdir()
            client.pull(url, destination=pulled, version=version, plain_http=plain_http)
            if read_files(pulled / archive.name) != read_files(archive):
                raise PushError(
                    f"{url}: version {version} is there with other files, and a version never changes; "
                    f"raise `version` in {chart.name}/Chart.yaml"
                )
            digest = client.resolve(f"{url}:{version}")["digest"]
    except helm_python.HelmError as error:
        raise PushError(f"{url}: {' '.join(str(error).split())}; see docs/images.md for how to log in") from error
    return PushedChart(url=url, version=version, digest=digest, is_new=is_new)


def list_versions(client: helm_python.RegistryClient, url: str) -> list[str]:
    """Return the versions of the chart in the registry; none where it has no such repository yet."""
    try:
        return client.tags(url)
    except helm_python.HelmRegistryError as error:
        # https://github.com/opencontainers/distribution-spec/blob/main/spec.md#error-codes
        if "status code 404" in str(error):
            return []
        raise


def read_files(archive: Path) -> dict[str, bytes]:
    """Return the files of a packaged chart by their paths. Their times are those of a checkout, and differ."""
    with tarfile.open(archive) as opened:
        found = ((member.name, opened.extractfile(member)) for member in opened.getmembers() if member.isfile())
        return {name: file.read() for name, file in found if file is not None}


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
    print(f"{'pushed' if pushed.is_new else 'there already, unchanged'}: {pushed.url}:{pushed.version}@{pushed.digest}")
    print(f"to install: helm install sweeps {pushed.url} --version {pushed.version} --values sweeps.yaml")


if __name__ == "__main__":
    main()
