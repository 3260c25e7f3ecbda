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
    PrepullOption,
    PublishOption,
    ReportOption,
    RetryOption,
    RunIdOption,
    SignOption,
    WatchOption,
    WebhookOption,
)


def run(
    matrix: MatrixArgument,
    on: OnOption = LOCAL,
    store: StoreOption = DEFAULT_STORE,
    run_id: RunIdOption = None,
    new: NewOption = False,
    retry: RetryOption = False,
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
    prepull: PrepullOption = None,
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
    from runner.commands import night, run_execution, run_request

    finish = run_execution.plan_end(output, with_report=report, is_published=publish)
    caps = run_execution.RunCaps(max_nodes=max_nodes, max_cost=max_cost, deadline=deadline, give_up_after=give_up_after)
    options = run_execution.ClusterOptions.of(caps, profile, namespace, queue, owner, prepull, metrics_port)
    asked = run_request.plan(matrix, store, run_id, (machine, prices, dry_run), (sign, verify), (new, retry, as_json))
    to_follow = night.NightWatch.plan(asked.store, is_watched=watch, webhooks=webhook or [])
    run_execution.execute_run(asked, options, finish, to_follow, on=on, python=python, max_in_flight=max_in_flight)
