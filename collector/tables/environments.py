"""Environments, their libraries, and machines: their tables, how machines of one type differ, what they share."""

import pandas as pd

from bench.registry import MODELS
from collector import units
from collector.analysis import Analysis
from collector.cell_words import FRAMEWORK_NAMES, PHASE_NAMES, take_images
from collector.ratio_words import NO_DIFFERENCE, UNDECIDED, judge_rows
from collector.results.collection import Collection
from collector.results.frames import Columns, list_rows, make_frame
from collector.results.hosts import describe_environment
from collector.results.summary import compare_calibrations, compare_machines, describe_deviations, select_sound
from collector.sharing import spread
from collector.tables.table import Table, count_column, interval_column, make_table, number_column, text_column
from collector.units import choose_rate_unit, format_significant

REMARK = (
    "Repeats are summarised together only where all of this is equal; hosts, which cores, kernel, memory, power "
    "limits, the generation of the PCIe link, revision, and where a cluster placed the repeat may differ."
)
OPTIMIZER = "setting optimizer"
"""A setting that every framework has, though some results do not record it: then it is not known, and not absent."""

PLACEMENTS = {
    "machine type": "instance_type",
    "region": "region",
    "zone": "zone",
    "kubelet": "kubelet_version",
    "image that ran": "image_id",
    "containers beside it": "other_containers",
}
"""What placements say of a cluster's nodes: the words of the table with their columns."""


def make_environments_table(analysis: Analysis) -> Table:
    """Return in what the run's environments differ, one column for each, named by what ran in it."""
    frame = _tabulate(analysis.collection)
    frame = frame[frame.nunique(axis="columns") > 1].rename_axis("property").reset_index()
    columns = [text_column(str(name), str(name)) for name in frame.columns]
    return make_table("Environments: in what they differ", columns, frame, remark=REMARK)


def make_shared_environment_table(analysis: Analysis) -> Table:
    frame = _tabulate(analysis.collection)
    alike = frame[frame.nunique(axis="columns") == 1]
    rows = pd.DataFrame({"property": alike.index, "value": alike.max(axis="columns")}, dtype="str")
    columns = [text_column("property", "property"), text_column("value", "value")]
    several = len(frame.columns) > 1
    return make_table("Environment: what all share" if several else "Environment", columns, rows)


def _tabulate(collection: Collection) -> pd.DataFrame:
    counts = collection.results["environment_id"].value_counts()
    names = _name_environments(collection)
    texts = {
        names[name]: {"id": name}
        | describe_environment(environment)
        | {"repeats": str(counts[name]), "hosts": _list_values(collection, name, "host")}
        | _describe_placements(collection, name)
        for name, environment in collection.environments.items()
    }
    for own in texts.values():
        own.setdefault(OPTIMIZER, NOT_RECORDED)
    frame = pd.DataFrame(texts, dtype="str").fillna(units.NOT_THERE)
    order = sorted(dict.fromkeys(name for found in texts.values() for name in found), key=_rank_property)
    known: pd.DataFrame = frame.loc[order]
    return known[(known != units.NOT_THERE).any(axis="columns")]


def _rank_property(name: str) -> tuple[int, str]:
    """Return a key that puts packages and settings behind the others, by their names; others stay as they come."""
    kind = next((place for place, words in enumerate(("package ", "setting "), start=1) if name.startswith(words)), 0)
    return kind, name if kind else ""


def _name_environments(collection: Collection) -> dict[str, str]:
    """Return a name for each environment: the frameworks and modes that ran in it, the phase or its id where needed."""
    results = collection.results
    rows = results.loc[results["environment_id"].notna(), ["environment_id", "framework", "mode", "phase"]]
    names = dict.fromkeys(collection.environments, "")
    for parts in (["framework", "mode"], ["framework", "mode", "phase"]):
        for name, own in rows.drop_duplicates().groupby("environment_id", sort=False):
            programs = own[parts].drop_duplicates().itertuples(index=False, name=None)
            names[str(name)] = ", ".join(_name_program(program) for program in programs)
        if len(set(names.values())) == len(names):
            return names
    alike = pd.Series(list(names.values()), dtype="str").value_counts()
    return {name: text if alike[text] == 1 and text else f"{text} [{name}]".strip() for name, text in names.items()}


def _name_program(program: tuple[str, ...]) -> str:
    framework, mode, *phases = program
    return " ".join([FRAMEWORK_NAMES.get(framework, framework), mode, *(PHASE_NAMES[phase] for phase in phases)])


def _describe_placements(collection: Collection, name: str) -> dict[str, str]:
    """Return what the placements of an environment's repeats say, each value once; a dash where none says it."""
    texts = {text: _list_values(collection, name, column) for text, column in PLACEMENTS.items()}
    spot = collection.results.loc[collection.results["environment_id"] == name, "is_spot"].dropna()
    counts = [(int((spot == is_spot).sum()), word) for is_spot, word in ((True, "yes"), (False, "no"))]
    return texts | {"spot": ", ".join(f"{count} {word}" for count, word in counts if count) or units.NOT_THERE}


def _list_values(collection: Collection, name: str, column: str) -> str:
    results = collection.results
    values = results.loc[results["environment_id"] == name, column].dropna().unique()
    return ", ".join(sorted(values)) or units.NOT_THERE


EXPLANATION = (
    "Each machine is held against those that measured the same cells: its step times over theirs, above 1 where it is "
    "slower. Its calibration, the matrix product and the copy within its memory that every cell measures outside its "
    "window, is held against that of the others of its type, above 1 where it is faster. A difference is stated "
    "where the interval excludes 1; the intervals of all machines hold together."
)


def make_machines_table(analysis: Analysis) -> Table:
    """Return one row per machine; none where the run used only one."""
    rows = tabulate_machines(analysis.collection.results)
    rows = rows if len(rows) > 1 else rows.head(0)
    rate = choose_rate_unit(rows["product_flops_per_second"].dropna())
    columns = [
        text_column("machine", "machine"),
        text_column("machine type", "instance_type", is_optional=True),
        text_column("zone", "zone", is_optional=True),
        count_column("cells", "num_cells"),
        count_column("repeats", "num_repeats"),
        number_column("matrix product", "product_flops_per_second", rate, is_optional=True),
        number_column("against the others", "product_factor", units.RATIO, is_optional=True),
        number_column("copy in memory", "copy_bytes_per_second", units.GIGABYTES_PER_SECOND, is_optional=True),
        number_column("against others", "copy_factor", units.RATIO, is_optional=True),
        number_column("SM clock, median", "gpu_sm_clock_mhz", units.MEGAHERTZ, is_optional=True),
        number_column("hottest", "gpu_max_temperature_celsius", units.CELSIUS, is_optional=True),
        number_column("step times against the others", "time_factor", units.RATIO),
        interval_column("95 % interval", "joint_low", "joint_high", units.RATIO),
        text_column("verdict", "words", is_optional=True),
    ]
    shown = rows.assign(words=rows["decision"].replace(UNDECIDED, NO_DIFFERENCE))
    deviations = "; ".join(rows["deviation"].dropna())
    named = deviations and f"By its calibration, against the others of its type: {deviations}."
    remark = " ".join(filter(None, [EXPLANATION, _name_different(rows), named]))
    return make_table("Machines, and how they differ", columns, shown, remark=remark)


def _name_different(rows: pd.DataFrame) -> str:
    """Return in a sentence which machines differ by more than the spread between repeats explains."""
    tested = rows[rows["decision"].notna()]
    if tested.empty:
        return "No two of them measured the same cell often enough to say whether they differ."
    different = tested[tested["decision"] != UNDECIDED]
    if different.empty:
        return f"None of {len(tested)} differs by more than the spread between repeats explains."
    factors = zip(different["machine"], different["time_factor"], strict=True)
    named = ", ".join(f"{machine} ({format_significant(factor)}x)" for machine, factor in factors)
    return f"{len(different)} of {len(tested)} differ by more than the spread between repeats explains: {named}."


MACHINE_TABLE_COLUMNS: Columns = {
    **dict.fromkeys(("machine", "instance_type", "zone", "cpu_model", "gpu_name"), "str"),
    **dict.fromkeys(("num_repeats", "num_cells"), "int64"),
    **dict.fromkeys(("product_flops_per_second", "product_factor", "copy_bytes_per_second", "copy_factor"), "float64"),
    "deviation": "str",
    **dict.fromkeys(("gpu_sm_clock_mhz", "gpu_max_temperature_celsius"), "float64"),
    **dict.fromkeys(("time_factor", "time_factor_low", "time_factor_high", "joint_low", "joint_high"), "float64"),
    **dict.fromkeys(("p_value", "p_adjusted"), "float64"),
    "decision": "str",
}
"""`product_flops_per_second`: the median of the matrix products of its cells; `product_factor`: its rate over that of
the machines that measured the same product; `copy_bytes_per_second` and `copy_factor` likewise of its memory;
`deviation`: in words, if it differs by its calibration from others of its type. `time_factor`: its step times over
those of the machines that measured the same cells, above 1 where it is slower. The decision states a difference where
the interval that holds together with those of all machines, `joint_low` to `joint_high`, excludes 1."""


def tabulate_machines(results: pd.DataFrame) -> pd.DataFrame:
    """Return one row per machine with sound repeats, columns MACHINE_TABLE_COLUMNS; an unknown factor is missing.

    `results`: rows of RESULT_COLUMNS.
    """
    sound = select_sound(results)
    times = compare_machines(sound, "center_step_seconds", ["cell_id", "environment_id"])
    factors = compare_calibrations(sound)
    deviations = describe_deviations(factors)
    machines = sound.groupby("machine")
    parts = [
        machines[["instance_type", "zone", "cpu_model", "gpu_name"]].first(),
        machines["cell_id"].agg(num_repeats="size", num_cells="nunique"),
        machines[["product_flops_per_second", "copy_bytes_per_second", "gpu_sm_clock_mhz"]].median(),
        machines["gpu_max_temperature_celsius"].max(),
    ]
    rows = [
        row
        | spread("time_factor", factor := times.get(row["machine"]))
        | ({"estimate": factor} if factor and factor.interval else {})
        | {name: found[row["machine"]].center for name, found in factors.items() if row["machine"] in found}
        | {"deviation": deviations.get(row["machine"])}
        for row in list_rows(pd.concat(parts, axis="columns").reset_index())
    ]
    return make_frame(judge_rows(rows, "slower", "faster"), MACHINE_TABLE_COLUMNS)


NOT_RECORDED = "not recorded"
BUILT_FOR = ("tensorflow",)
"""Frameworks that name the CUDA and cuDNN which they were built for (tf.sysconfig.get_build_info), not those loaded."""
BATCH_NORM = "Keras ({names}) computes the batch norms of {models} from several operations, PyTorch in one"
FUSED_NORM = "the mode fused-norm of TensorFlow measures what that costs"


SEARCH = "cuDNN tries its algorithms first (cudnn_benchmark):"
FACTS = {
    "CUDA": "GPU cuda version",
    "cuDNN": "GPU cudnn version",
    "layout of images": "setting memory_format",
    SEARCH: "setting cudnn_benchmark",
    "optimizer": OPTIMIZER,
}
"""What is held against each other of frameworks, with its property."""
GPU_FACTS, IMAGE_FACTS = ("CUDA", "cuDNN", SEARCH), ("layout of images", SEARCH)
"""Facts that say nothing of what a CPU or a model without images computed, though environments record them."""


def describe_libraries(pairs: pd.DataFrame, collection: Collection) -> str:
    """Name the libraries and settings in which the compared frameworks differ or may differ; empty if there are none.

    As `CUDA 13.0 (PyTorch, JAX), 12.5.1 (TensorFlow, of its build)`. `pairs`: rows of `compare_cells`; other
    comparisons than those of frameworks have nothing to say.
    """
    if "framework_subject" not in pairs:
        return ""
    compared = pairs[pairs["ratio"].notna()]
    environments, texts = _list_environments(compared, collection), []
    untold = {*(() if (compared["device"] == "gpu").any() else GPU_FACTS)}
    untold |= {*(() if take_images(compared["model"]) else IMAGE_FACTS)}
    for fact in (name for name in FACTS if name not in untold):
        owners: dict[str, list[str]] = {}
        for framework, own in environments.items():
            # An optimizer of `none` is that of inference.
            values = sorted({one.get(FACTS[fact], NOT_RECORDED) for one in own} - {"none"})
            values = [NOT_RECORDED if value == units.NOT_THERE else value for value in values]
            is_built_for = framework in BUILT_FOR and fact in ("CUDA", "cuDNN") and values != [NOT_RECORDED]
            name = FRAMEWORK_NAMES[framework] + (", of its build" if is_built_for else "")
            if values:
                owners.setdefault(" or ".join(values), []).append(name)
        if len(owners) > 1:
            named = (f"{value} ({', '.join(names)})" for value, names in owners.items())
            texts.append(f"{fact} {', '.join(named)}")
    differ = f"The frameworks differ, or may, in: {'; '.join(texts)}." if texts else ""
    return " ".join(filter(None, [differ, *_describe_batch_norms(compared)]))


def _list_environments(pairs: pd.DataFrame, collection: Collection) -> dict[str, list[dict[str, str]]]:
    """Return the environments that each framework of the pairs ran in, frameworks in the order of the registry."""
    found: dict[str, set[str]] = {}
    for side in ("subject", "reference"):
        for framework, own in pairs.groupby(f"framework_{side}")[f"environment_id_{side}"]:
            found.setdefault(str(framework), set()).update(own.dropna())
    known = {name: describe_environment(one) for name, one in collection.environments.items()}
    return {
        name: [known[one] for one in sorted(found[name]) if one in known] for name in FRAMEWORK_NAMES if name in found
    }


def _describe_batch_norms(pairs: pd.DataFrame) -> list[str]:
    """Return a sentence on the models of the pairs with batch norms, one side being Keras (docs/measurement.md)."""
    has_norms = pairs["model"].map(lambda name: name in MODELS and MODELS[name].has_batch_norm).astype(bool)
    rows = pairs[has_norms & (pairs["mode_subject"] != "fused-norm") & (pairs["framework_reference"] == "pytorch")]
    if rows.empty:
        return []
    names = [FRAMEWORK_NAMES[name] for name in dict.fromkeys(rows["framework_subject"])]
    models = " and ".join(dict.fromkeys(rows["model"]))
    text = BATCH_NORM.format(names=", ".join(names), models=models)
    is_measured = bool((pairs["mode_subject"] == "fused-norm").any())
    return [f"{text}; {FUSED_NORM}." if is_measured else f"{text}."]
