"""The command `run`: its options; `run_execution` does what they ask for."""

from runner.commands.machines import MachinesOption
from runner.commands.options import (
    DEFAULT_STORE,
    LOCAL,
    JsonLinesOption,
    MatrixArgument,
    OutputOption,
    PricesOption,
    PythonOption,
    StoreOption,
    VerifyOption,
)
from runner.commands.run_options import (
    ClusterNamespaceOption,
    ClusterProfileOption,
    ClusterQueueOption,
    DeadlineOption,
    DryRunOption,
    GiveUpOption,
    MaxCostOption,
    MaxInFlightOption,
    MaxNodesOption,
    MetricsOption,
    NewOption,
    OnOption,
    OwnerOption,
    PublishOption,
    ReportOption,
    RetryContaminatedOption,
    RetryOption,
    RunIdOption,
    SignOption,
    WatchOption,
    WebhookOption,
)
from runner.commands.run_request import Again, ClusterOptions, Ending, PricingOptions, RunCaps, RunRequest


def run(
    matrix: MatrixArgument,
    on: OnOption = LOCAL,
    store: StoreOption = DEFAULT_STORE,
    run_id: RunIdOption = None,
    new: NewOption = False,
    retry_failed: RetryOption = False,
    retry_contaminated: RetryContaminatedOption = False,
    dry_run: DryRunOption = False,
    machine: MachinesOption = None,
    prices: PricesOption = None,
    python: PythonOption = None,
    profile: ClusterProfileOption = None,
    namespace: ClusterNamespaceOption = None,
    queue: ClusterQueueOption = None,
    max_in_flight: MaxInFlightOption = 200,
    max_nodes: MaxNodesOption = None,
    max_cost: MaxCostOption = None,
    give_up_after: GiveUpOption = None,
    metrics_port: MetricsOption = None,
    deadline: DeadlineOption = None,
    owner: OwnerOption = None,
    as_json: JsonLinesOption = False,
    output: OutputOption = None,
    report: ReportOption = True,
    publish: PublishOption = False,
    watch: WatchOption = False,
    webhook: WebhookOption = None,
    sign: SignOption = None,
    verify: VerifyOption = None,
) -> None:
    """Measure MATRIX, or what is missing of its unfinished run, then collect and report."""
    caps = RunCaps(max_nodes=max_nodes, max_cost=max_cost, deadline=deadline, give_up_after=give_up_after)
    options = ClusterOptions.of(caps, profile, namespace, queue, owner, metrics_port)
    again, pricing = Again(new, retry_failed, retry_contaminated), PricingOptions(machine, prices, dry_run)
    asked = RunRequest(matrix, store, run_id, again, pricing, sign, verify)
    _execute(asked, options, Ending(output, report, publish, watch, webhook, as_json), on, python, max_in_flight)


def _execute(
    request: RunRequest, options: ClusterOptions, ending: Ending, on: str, python: list[str] | None, max_in_flight: int
) -> None:
    from runner.commands.run_execution import execute_run

    execute_run(request, options, ending, on=on, python=python, max_in_flight=max_in_flight)
