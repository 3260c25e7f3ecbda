"""Say what of a run's origin is a reason for doubt: machines, versions, signatures, the tool, documents left out."""

from collector.analysis import Analysis
from collector.facts import count_things, describe_signatures
from collector.labels import FRAMEWORK_NAMES
from collector.report.trust_line import MAX_NAMED, State, TrustLine, join_sentences, select_ok
from collector.word_lists import join_some

ITSELF = ("itself or another", "themselves or others")


def name_machines(analysis: Analysis) -> TrustLine | None:
    """Name the hosts, GPUs and drivers that the run used, and warn that there are several drivers; None if not."""
    ok = select_ok(analysis)
    hosts = sorted(ok["host"].dropna().unique())
    drivers = sorted(ok["driver_version"].dropna().unique())
    if len(drivers) < 2:
        return None
    parts = [
        f"{count_things(len(hosts), 'host')} ({join_some(hosts, MAX_NAMED)})" if hosts else "the host is not known"
    ]
    gpu = ok[ok["device"] == "gpu"]
    if len(gpu):
        names = join_some(sorted(gpu["gpu_name"].dropna().unique()), MAX_NAMED) or "of a kind that is not known"
        number = gpu.loc[gpu["gpu_uuid"].notna(), "gpu_uuid"].str.split(", ").explode().nunique()
        parts.append(f"{count_things(number, 'GPU')} ({names})" if number else f"GPU: {names}")
    parts.append(f"driver {join_some(drivers, MAX_NAMED)}")
    return TrustLine(
        title="Machine",
        text=f"{'; '.join(parts)}.",
        state="beware",
        doubt=f"{len(drivers)} versions of the driver",
        anchor="environments",
    )


def name_versions(analysis: Analysis) -> TrustLine | None:
    """Return the versions of frameworks and Python: beware of several, unknown where one is missing."""
    ok = select_ok(analysis)
    parts: list[str] = []
    states: set[State] = set()
    for name, rows in ok.groupby("framework", sort=True):
        versions = sorted(rows["framework_version"].dropna().unique())
        is_open = bool(rows["framework_version"].isna().any())
        listed = join_some([*versions, *(["not known"] if is_open else [])], MAX_NAMED)
        parts.append(f"{FRAMEWORK_NAMES.get(str(name), name)} {listed}")
        states |= {"beware"} if len(versions) > 1 else {"unknown"} if is_open else set()
    if not states:
        return None
    python = join_some(sorted(ok["python_version"].dropna().unique()), MAX_NAMED)
    parts.append(f"Python {python}" if python else "Python: not known")
    state: State = "beware" if "beware" in states else "unknown"
    doubt = "several versions of a framework" if state == "beware" else "versions of frameworks"
    return TrustLine(title="Versions", text=f"{', '.join(parts)}.", state=state, doubt=doubt, anchor="environments")


def judge_signatures(analysis: Analysis) -> TrustLine:
    """Say that the origin is unknown if signatures were not checked, and warn of wrong ones."""
    found = analysis.collection.signatures
    state: State = "unknown" if found is None else "beware" if found.problems else "good"
    doubt = "whether results were changed" if found is None else "documents whose signature is not right"
    text = join_sentences(describe_signatures(analysis.collection))
    return TrustLine(title="Signatures", text=text, state=state, doubt=doubt)


def name_tool(analysis: Analysis) -> TrustLine | None:
    """Return the version of this tool that planned the run: beware of changes that no revision has."""
    run = analysis.collection.run
    commit, dirty, _ = (run.git_revision or "").partition("-dirty")
    if commit and not dirty:
        return None
    revision = f"revision {commit[:12]}" if commit else "its revision is not known"
    changed = ", with changes that no revision has" if dirty else ""
    text = f"benchmatrix {run.tool_version}, {revision}{changed}."
    doubt = "the tool's code had changes that no revision has" if dirty else "the tool's revision"
    return TrustLine(title="Tool", text=text, state="beware" if dirty else "unknown", doubt=doubt)


def judge_dates(analysis: Analysis) -> TrustLine | None:
    """Beware of results whose dates cannot be."""
    doubts = analysis.collection.doubts
    if not doubts:
        return None
    return TrustLine(title="Dates", text=join_sentences(*doubts), state="beware", doubt="dates that cannot be")


def count_skipped(analysis: Analysis) -> TrustLine | None:
    """Beware of documents that do not count, and say of how many what is in them cannot be."""
    skipped = analysis.collection.skipped
    count = len(skipped)
    if not count:
        return None
    num_odd = sum(document.is_contradiction for document in skipped)
    which = f": {num_odd:,} {'contradict' if num_odd > 1 else 'contradicts'} {ITSELF[num_odd > 1]}" if num_odd else ""
    documents = count_things(count, "document")
    return TrustLine(
        title="Skipped",
        text=f"{documents} in the store did not count{which}.",
        state="beware",
        doubt=f"{documents} did not count",
        anchor="not-known",
    )
