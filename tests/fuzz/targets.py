"""What is fuzzed: every foreign input of the tool, where it lies, the commands that read it, and strategies for it."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Literal

from hypothesis import strategies as st

from fuzz.cases import Case, Content
from fuzz.inputs import (
    audit_tables,
    gpu_tables,
    matrices,
    parquet_files,
    price_tables,
    probes,
    profiles,
    scenarios,
    value_tables,
)
from fuzz.server_inputs import clusters, kubeconfigs, store_servers
from fuzz.signed import PLAN_FILE, RESULT_FILE, public_keys, signed_plans, signed_results, signing_keys
from fuzz.stored import DOCUMENTS, rows
from fuzz.surroundings import command_lines, environments, file_names, programs
from fuzz.workspaces import RUN_A, RUN_B

S3_URL = "s3://fuzzed"
Place = Literal["file", "words", "variables", "names", "rows", "store-server", "api-server"]
"""Where the content goes: into a file, the command line, the variables, the names of files in the store, its data
set, or what a server says."""

DEAR_USES = frozenset(
    {"report", "site", "plot", "paper-plot", "collect-latex", "rebuild", "answers-json", "watch-json"}
)
"""They render pages and plots, or do again what another use does: up to four seconds of CPU each."""


@dataclass(frozen=True, kw_only=True)
class Target:
    """A foreign input. `uses`: names of commands that read it, each with its words after the program's name."""

    name: str
    contents: st.SearchStrategy[Content]
    uses: dict[str, str]
    place: Place = "file"
    file: str = ""
    replaced: tuple[str, ...] = ("old.md",)

    def draw_cases(self, *, is_cheap: bool = False) -> st.SearchStrategy[Case]:
        """Draw a use and a content; `is_cheap`: leave out the uses that take seconds of CPU."""
        uses = [use for use in sorted(self.uses) if not (is_cheap and use in DEAR_USES)]
        return st.builds(Case, st.just(self.name), st.sampled_from(uses), self.contents)


MANIFESTS = "render matrix.yaml --manifests out --profile profile.yaml --store s3://fuzzed/runs"
PRICE_USES = {
    "cost": f"cost {RUN_B} --prices prices.yaml --machine cpu=m1",
    "cost-page": f"cost {RUN_B} --prices prices.yaml --machine gpu=g1 --markdown --output old.md",
    "cost-json": f"cost {RUN_B} --prices prices.yaml --machine gpu=g1 --dataset imagenet --epochs 90 --json",
    "plan": "run matrix.yaml --dry-run --prices prices.yaml --machine cpu=m1 --max-cost 5",
    "render": "render matrix.yaml --prices prices.yaml --machine cpu=m1 --earlier file://results",
    "answers": f"answers {RUN_B} --prices prices.yaml",
    "plot": f"plot latencies {RUN_B} --prices prices.yaml --output out.svg",
    "report": f"report {RUN_B} --prices prices.yaml --output out",
}
FORECAST = "--value value --date date --name Model"
STORE_USES = {
    "status": f"status {RUN_A}",
    "status-json": f"status {RUN_A} --json",
    "newest": "status",
    "collect": f"collect {RUN_A} --output out",
    "collect-latex": f"collect {RUN_A} --output out --format latex",
    "rebuild": f"collect {RUN_A} --output out --rebuild",
    "answers": f"answers {RUN_A}",
    "answers-json": f"answers {RUN_A} --json",
    "compare": f"compare {RUN_A} {RUN_B}",
    "compare-page": f"compare {RUN_A} {RUN_B} --markdown --output old.md",
    "compare-json": f"compare {RUN_A} {RUN_B} --json",
    "report": f"report {RUN_A} --output out",
    "site": "report --site out",
    "plot": f"plot roofline {RUN_A} --output out.svg",
    "claims": f"claims {RUN_A} {RUN_B} --output old.md",
    "audit": f"audit audit.yaml --run {RUN_A} --output old.md",
    "cost": f"cost {RUN_A} --machine cpu=n2-standard-8 --markdown",
    "batches": f"batches {RUN_A} --json",
    "watch": "watch --confirmation out.yaml --metrics-file out.prom",
    "watch-json": "watch --json --final",
    "clean": "clean --store file://results --raw-older-than 1d --include-unfinished",
    "delete": "clean --store file://results --raw-older-than 1d --include-unfinished --delete --yes",
    "earlier": "render matrix.yaml --earlier file://results",
    "plan": "run matrix.yaml --dry-run",
    "resume": f"run matrix.yaml --dry-run --run-id {RUN_A}",
}
VERIFYING_USES = {
    command: f"{words} --verify keys.pub"
    for command, words in {
        "status": f"status {RUN_A} --store file://signed",
        "newest": "status --store file://signed",
        "collect": f"collect {RUN_A} --store file://signed --output out",
        "answers": f"answers {RUN_A} --store file://signed",
        "compare": f"compare {RUN_A} {RUN_B} --store file://signed --store-b file://results",
        "report": f"report {RUN_A} --store file://signed --output out",
        "plot": f"plot roofline {RUN_A} --store file://signed --output out.svg",
        "claims": f"claims {RUN_A} --store file://signed --output old.md",
        "audit": f"audit audit.yaml --run {RUN_A} --store file://signed",
        "cost": f"cost {RUN_A} --store file://signed --machine cpu=n2-standard-8",
        "batches": f"batches {RUN_A} --store file://signed",
        "watch": "watch --store file://signed",
        "resume": f"run matrix.yaml --dry-run --run-id {RUN_A} --store file://signed --sign key.pem",
    }.items()
}
SIGNED_USES = {
    use: words.replace("keys.pub", "key.pem.pub")
    for use, words in VERIFYING_USES.items()
    if use in ("status", "newest", "collect", "answers", "report", "watch", "resume")
}
CLUSTER_USES = {
    "status": f"status {RUN_A} --on lab",
    "doctor": "doctor matrix.yaml --on lab --profile profile.yaml --queue q --store s3://fuzzed/results",
    "doctor-json": "doctor matrix.yaml --on current --profile k3s --json",
    "cancel": f"cancel {RUN_A} --on lab --profile k3s --dry-run",
    "cancel-json": f"cancel {RUN_A} --on lab --profile k3s --store file://results --json",
    "clean": f"clean {RUN_A} --on lab --profile k3s --dry-run",
    "clean-force": f"clean {RUN_A} --on lab --profile k3s --store file://results --force",
    "setup": "setup --on lab --profile profile.yaml --no-s3 --queue q --quota cpu=2",
    "exports": "setup --on lab --profile kind --exports",
}
ON_S3 = {
    "status": f"status {RUN_A} --store {S3_URL}",
    "newest": f"status --store {S3_URL}",
    "collect": f"collect {RUN_A} --store {S3_URL} --output out",
    "compare": f"compare {RUN_A} {RUN_B} --store {S3_URL} --store-b file://results",
    "report": f"report {RUN_A} --store {S3_URL} --output out",
    "watch": f"watch --store {S3_URL}",
    "clean": f"clean --store {S3_URL} --raw-older-than 1d --include-unfinished",
    "earlier": f"render matrix.yaml --earlier {S3_URL}",
    "audit": f"audit nvidia-t4-resnet50 --run {RUN_A} --store {S3_URL}",
    "doctor": f"doctor smoke --on lab --profile k3s --store {S3_URL}",
}


def _make_targets() -> Iterable[Target]:
    yield Target(
        name="matrix",
        file="matrix.yaml",
        contents=matrices,
        uses={
            "render": "render matrix.yaml",
            "render-json": "render matrix.yaml --json",
            "plan": "run matrix.yaml --dry-run",
            "manifests": MANIFESTS,
            "doctor": "doctor matrix.yaml --on lab --profile k3s",
        },
    )
    profile_uses = {
        "manifests": MANIFESTS,
        "setup": "setup --on lab --profile profile.yaml --dry-run --queue q --quota cpu=2 --cohort all",
        "doctor": "doctor matrix.yaml --on lab --profile profile.yaml",
        "status": f"status {RUN_A} --on lab --profile profile.yaml",
        "cancel": f"cancel {RUN_A} --on lab --profile profile.yaml --dry-run",
        "run": "run matrix.yaml --on lab --profile profile.yaml --store s3://fuzzed --dry-run",
    }
    yield Target(name="profile", file="profile.yaml", contents=profiles, uses=profile_uses)
    yield Target(name="extended-profile", file="base.yaml", contents=profiles, uses=profile_uses)
    yield Target(name="prices", file="prices.yaml", contents=price_tables, uses=PRICE_USES)
    scenario_uses = {
        "access": "access scenario.yaml --weeks 5",
        "json": "access scenario.yaml --weeks 5 --json",
        "page": "access scenario.yaml --weeks 5 --markdown --output old.md",
    }
    yield Target(name="scenario", file="scenario.yaml", contents=scenarios, uses=scenario_uses)
    for kind, contents in audit_tables.items():
        table = f"audit audit.{kind}"
        uses = {"audit": table, "json": f"{table} --json", "page": f"{table} --run {RUN_A} --output old.md"}
        yield Target(name=f"audit-{kind}", file=f"audit.{kind}", contents=contents, uses=uses)
    yield from _make_forecast_targets()
    yield from _make_store_targets()
    yield from _make_surroundings()


def _make_store_targets() -> Iterable[Target]:
    batches = f"batches {RUN_B} --probe probe.json"
    yield Target(
        name="probe", file="probe.json", contents=probes, uses={"batches": batches, "json": f"{batches} --json"}
    )
    for name, (file, contents) in DOCUMENTS.items():
        yield Target(name=name, file=f"results/{file}", contents=contents, uses=STORE_USES)
    shown = {"show": "keys show keys.pub", "show-public": "keys show keys.pub --public"}
    yield Target(name="public-keys", file="keys.pub", contents=public_keys, uses=VERIFYING_USES | shown)
    signing = {
        "plan": "run matrix.yaml --dry-run --sign key.pem",
        "show": "keys show key.pem --public",
        "clean": "clean --store file://signed --raw-older-than 1d --sign key.pem --verify keys.pub",
        "watch": "watch --store file://signed --sign key.pem --verify keys.pub",
        "cancel": f"cancel {RUN_A} --on none --store file://signed --sign key.pem --verify keys.pub --dry-run",
    }
    yield Target(name="signing-key", file="key.pem", contents=signing_keys, uses=signing)
    yield Target(name="signed-result", file=RESULT_FILE, contents=signed_results, uses=SIGNED_USES)
    yield Target(name="signed-plan", file=PLAN_FILE, contents=signed_plans, uses=SIGNED_USES)
    yield Target(name="names", place="names", contents=file_names, uses=STORE_USES)
    yield Target(name="rows", place="rows", contents=rows, uses=STORE_USES)


def _make_surroundings() -> Iterable[Target]:
    yield Target(name="kubeconfig", file="kubeconfig", contents=kubeconfigs, uses=CLUSTER_USES)
    yield Target(name="api-server", place="api-server", contents=clusters, uses=CLUSTER_USES)
    yield Target(name="s3-server", place="store-server", contents=store_servers, uses=ON_S3)
    yield Target(name="words", place="words", contents=command_lines, uses={"words": ""})
    yield Target(
        name="variables",
        place="variables",
        contents=environments,
        uses={
            "s3": f"status --store {S3_URL}",
            "version": "version",
            "help": "run --help",
            "cluster": CLUSTER_USES["status"],
            "directory": "status",
            "watch": "watch --webhook slack:SLACK_URL",
        },
    )
    yield Target(
        name="docker",
        file="bin/docker",
        contents=programs,
        uses={"list": "images list", "build": "images build pytorch", "dry-run": "images build --dry-run",
              "push": "images push registry.example/team pytorch", "sbom": "images sbom pytorch --output out"},
    )  # fmt: skip


def _make_forecast_targets() -> Iterable[Target]:
    uses = {
        "forecast": "forecast --table gpus.csv --year 2030",
        "json": "forecast --table gpus.csv --year 2030 --json",
        "plot": "forecast --table gpus.csv --year 2030 --plot out.html",
        "report": f"report {RUN_B} --table gpus.csv --output out",
        "paper-plot": f"plot forecast {RUN_B} --table gpus.csv --output out.pdf",
        "supply": "gap --supply gpus.csv --demand values.csv --year 2030",
    }
    yield Target(name="gpus", file="gpus.csv", contents=gpu_tables, uses=uses)
    for file, contents in (("values.csv", value_tables), ("values.parquet", parquet_files)):
        uses = {
            "forecast": f"forecast --table {file} {FORECAST}",
            "json": f"forecast --table {file} {FORECAST} --json",
            "plot": f"forecast --table {file} {FORECAST} --plot out.html",
            "where": f"forecast --table {file} {FORECAST} --where Model --at-least 1 --since 2010",
            "quantity": f"forecast --table {file} --quantity training-compute",
            "gap": f"gap --demand {file} --demand-quantity parameters --year 2030",
            "gap-json": f"gap --demand {file} --year 2030 --plot out.svg --json",
        }
        yield Target(name=file.replace(".", "-"), file=file, contents=contents, uses=uses)


@cache
def list_targets() -> dict[str, Target]:
    """Return all targets by name."""
    return {target.name: target for target in _make_targets()}
