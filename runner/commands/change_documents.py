"""Define the JSON documents of commands that delete, apply or build something, or list what there is."""

from datetime import datetime
from typing import Any, Literal

from bench.schema import Document


class JobsDocument(Document):
    """What `cancel` or `clean` did to the Jobs of one run, or would do (`is_dry_run`)."""

    jobs_version: Literal[1] = 1
    run_id: str
    namespace: str
    num_deleted: int
    num_left: int
    """Of `cancel`, finished ones that stay. Of `clean --dry-run`, all where an unfinished one would stop it."""
    is_dry_run: bool
    num_unfinished: int | None = None
    """Of `clean --dry-run`, with pods whose Job is gone: without --force nothing is deleted as long as there is one.
    Else null: not counted."""
    num_pods: int = 0
    """Of `clean`: pods whose Job was gone, which it deleted besides, or would delete."""
    pods_left: str | None = None
    """Of `clean`: why pods whose Job is gone are left, or not known; null: none is left."""
    unmarked_reason: str | None = None
    """Why a cancellation could leave no mark in the store of the run; null: it has left one, or none was due."""
    confirmation: "JobsDocument | None" = None
    """The same of the run that measured the suspicions of this night again; null: there is none, or a dry run."""


class RunRawResults(Document):
    """Raw results of one run that are deleted."""

    run_id: str
    last_write: datetime
    num_results: int
    num_bytes: int
    kept: dict[str, int]
    """Raw results of the run that stay, by reason."""


class RawResultsDocument(Document):
    """Which raw results `clean --store` has deleted, or would delete (`is_dry_run`, without --delete)."""

    raw_results_version: Literal[1] = 1
    older_than: str
    is_dry_run: bool
    runs: tuple[RunRawResults, ...]
    kept_runs: dict[str, str]
    """Runs old enough that keep all their raw results, with the reason."""
    num_younger_runs: int
    num_runs_without: int
    """Runs old enough whose raw results were all gone before."""


ImageOutcome = Literal["named", "already built", "built", "not built", "pushed", "not pushed", "described"]


class ImageDocument(Document):
    """One container image of benchmatrix."""

    image: str
    """`pytorch:cpu`, or `control`: as the commands take it."""
    reference: str
    """`REGISTRY/NAME:TAG`."""
    outcome: ImageOutcome
    """`named`: by `images list`, which asks nobody. `not built` and `not pushed`: of a dry run."""
    num_bytes: int | None = None
    """With all layers; null: not asked."""
    digest_reference: str | None = None
    """`REPOSITORY@sha256:...` of a pushed image; null: not pushed."""
    file: str | None = None
    """Its bill of materials, of `images sbom`."""


class ImagesDocument(Document):
    """What `images list`, `build`, `push` or `sbom` says of each image."""

    images_version: Literal[1] = 1
    images: tuple[ImageDocument, ...]
    profile_values: dict[str, Any]
    """What a profile has to say so that runs find these images; empty: nothing."""
    chart_values: dict[str, Any]
    """What the chart's values have to say so that it uses them; empty: nothing."""


class ShippedDocument(Document):
    """What comes with the tool, by name: what `--list` of a command prints."""

    shipped_version: Literal[1] = 1
    shipped: dict[str, str]
    """What each is, by the name that the command takes."""
