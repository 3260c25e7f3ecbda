"""The promises of docs/kubernetes.md: what must be in the store or the cluster afterwards, and the test that shows it."""

from typing import NamedTuple


class Promise(NamedTuple):
    """A promise of a run, and who holds it."""

    promise: str
    afterwards: str
    test: str
    """file::function, from tests/."""


PROMISES = tuple(
    Promise(*(part.strip() for part in line.split("|")))
    for line in """
every planned repeat is measured once|one terminal record each|cluster/test_executor.py::test_every_repeat_is_measured_once_and_has_its_record
each end has its record and its class|failed, oom, timeout recorded; not retried|cluster/test_executor.py::test_each_end_leaves_its_record_and_is_not_retried
the order that was drawn is kept|Jobs created in the plan's order|cluster/test_executor.py::test_jobs_are_submitted_in_the_order_that_was_drawn_for_the_run
a runner killed again and again loses nothing|each repeat measured once|cluster/test_resume.py::test_a_runner_that_is_killed_ten_times_measures_everything_once
Ctrl-C leaves the Jobs; the same command ends the run|all records there|cluster/test_resume.py::test_ctrl_c_leaves_the_jobs_and_the_same_command_ends_the_run
Ctrl-C works while the API server is away|the runner ended at once|cluster/test_resume.py::test_ctrl_c_ends_a_runner_at_once_whose_api_server_is_away
a Job that somebody deletes is made again|its record|cluster/test_resume.py::test_a_job_that_somebody_deletes_is_made_again
Jobs that expired unseen have their records|records, no second measurement|cluster/test_resume.py::test_jobs_that_went_by_their_time_to_live_while_nobody_looked_have_their_records
a cancelled run ends|no Job, no later one|cluster/test_resume.py::test_a_cancelled_run_ends
what failed is measured again when asked for|a new attempt beside the old record|cluster/test_resume.py::test_what_failed_is_measured_again_in_a_new_job_when_asked_for
what was contaminated is measured again when asked for|a new attempt beside the old record|cluster/test_resume.py::test_what_was_contaminated_is_measured_again_in_a_new_job_when_asked_for
a store that is away is waited for|all records, one message|cluster/test_resume.py::test_a_store_that_is_away_is_waited_for_and_told_about
a preempted cell is measured again|one ok record, disruption counted|cluster/test_faults.py::test_a_cell_that_a_pod_of_higher_priority_displaces_is_measured_again
an evicted cell is measured again|one ok record|cluster/test_faults.py::test_a_cell_that_the_eviction_api_takes_down_is_measured_again
infrastructure is retried up to the limit|a record of the last failure|cluster/test_faults.py::test_pods_that_fail_on_infrastructure_are_made_again_up_to_the_limit
a pod over its storage limit is not retried|one record that says so|cluster/test_faults.py::test_a_pod_over_its_storage_limit_is_not_made_again_though_it_ended_as_by_sigterm
a deleted and killed pod is measured again|one ok record|cluster/test_faults.py::test_a_cell_whose_pod_was_deleted_and_killed_is_measured_again
cut watches change nothing|all records|cluster/test_faults.py::test_a_run_goes_on_when_its_watches_are_cut
a busy server and lost answers make no second Job|one Job a repeat|cluster/test_faults.py::test_a_server_that_is_busy_is_given_time_and_lost_answers_make_no_second_job
an expired token is read again|the run goes on|cluster/test_faults.py::test_an_expired_token_is_read_again
a run outlives a killed API server|all records|cluster/test_outage.py::test_a_run_outlives_an_api_server_that_is_killed_and_started_again
nodes that counted as lost come back|their cells' records|cluster/test_outage.py::test_nodes_that_counted_as_lost_are_ready_again_and_their_cells_run
a bad node takes few cells|node faults stored, all cells ok elsewhere|cluster/test_node_faults.py::test_one_bad_node_takes_few_cells_and_none_is_lost
a run stops where every node fails|no false record; resumed once mended|cluster/test_node_faults.py::test_a_run_stops_where_every_node_fails_and_goes_on_once_they_are_mended
node faults outlive the runner|the next runner avoids the node|cluster/test_node_faults.py::test_what_earlier_runners_saw_of_a_node_is_known_to_the_next
a silent node is told, its cell measured elsewhere|one ok record|cluster/test_pending_pods.py::test_a_node_that_goes_silent_is_told_about_and_its_cell_measured_again_when_it_is_deleted
a quota on Jobs is waited for|all records|cluster/test_pending_pods.py::test_a_quota_on_jobs_is_waited_for_until_there_is_room
a quota on cores is told and waited for|all records|cluster/test_pending_pods.py::test_a_quota_on_cores_is_told_in_the_job_controllers_words_and_waited_for
what no node takes is given up in the scheduler's words|a record: unschedulable|cluster/test_pending_pods.py::test_what_no_node_takes_is_told_in_the_schedulers_words_and_given_up
a pod that waits its turn is not given up|its record|cluster/test_pending_pods.py::test_a_pod_that_waits_for_its_turn_is_not_given_up
a missing Secret is told|a record: bad configuration|cluster/test_pending_pods.py::test_a_secret_that_is_missing_is_told_and_waited_for_a_moment
too few rights are one message|nothing created|cluster/test_permissions.py::test_a_run_without_one_of_its_rights_creates_nothing
a deadline deletes what has not ended|records of what ended, nothing after|cluster/test_deadline.py::test_what_has_not_ended_is_deleted_and_nothing_comes_after_it
what had ended is recorded before the report|its records|cluster/test_deadline.py::test_what_had_ended_has_its_record_before_the_report_is_made
a successor gets no time of its own|the first runner's deadline|cluster/test_deadline.py::test_a_runner_that_takes_the_place_of_another_gets_no_time_of_its_own
two runners share a run|each repeat once|cluster/test_two_runners.py::test_two_runners_share_a_run
cancel stops both runners|no Job, no later one|cluster/test_two_runners.py::test_cancel_stops_both_even_if_one_sees_nothing_at_present
cancel leaves what is finished|the mark, the records|cluster/test_cleanup.py::test_cancel_stops_the_runner_and_leaves_what_is_finished
clean refuses while cells run|all Jobs; none with --force|cluster/test_cleanup.py::test_clean_refuses_while_cells_run_and_removes_all_with_force
the mark of a cancellation is there before a Job is touched|the mark in the store|cluster/test_cancellation.py::test_the_mark_is_there_before_a_job_is_touched_and_in_nobodys_way
status tells what runs and why the rest waits|nothing changed|cluster/test_cleanup.py::test_status_tells_what_runs_and_why_the_rest_waits
pods whose Job is gone are cleaned|the run's own only|cluster/test_orphaned_pods.py::test_clean_deletes_the_pods_of_the_run_whose_job_is_gone_and_no_others
Jobs of others are left|untouched|cluster/test_foreign_jobs.py::test_a_job_of_the_same_name_that_somebody_else_made_is_not_taken_for_the_runs_own
a run of the same id with another store is another run|its own records|cluster/test_foreign_jobs.py::test_the_same_run_id_with_another_store_measures_everything_for_itself
new images do not mix with old Jobs|refused|cluster/test_foreign_jobs.py::test_a_run_that_goes_on_with_new_images_refuses_while_jobs_with_the_old_ones_run
no more Jobs wait than nodes can take|at most that many|cluster/test_capacity.py::test_no_more_jobs_wait_than_the_nodes_can_take_next
recorded Jobs are deleted in batches|no Job, all records|cluster/test_capacity.py::test_recorded_jobs_are_deleted_in_batches_and_nothing_is_lost_or_run_twice
a suspended Job is measured again|one ok record|cluster/test_suspension.py::test_a_job_suspended_in_mid_measurement_is_measured_again_and_counted
a cell has its node alone|one cell a node|cluster/test_placement.py::test_each_cell_has_a_node_of_its_pool_alone_and_one_too_many_waits
cells of other runs keep off|one cell a node|cluster/test_placement.py::test_cells_of_other_runs_and_namespaces_keep_off_a_node_that_is_taken
several GPUs need one node that has them|placed there|cluster/test_placement_gpus.py::test_several_gpus_need_a_node_that_has_them
claims replace limits|placed with devices|cluster/test_placement_gpus.py::test_a_claim_takes_the_place_of_the_limit_and_is_met_on_a_node_with_devices
tenants are placed all or none|all wait|cluster/test_placement_tenants.py::test_a_group_waits_as_a_whole_where_only_some_of_its_tenants_fit
two groups share no node|one group a node|cluster/test_placement_tenants.py::test_two_groups_do_not_share_a_node_though_it_has_shares_for_both
every attempt's place is stored|a placement each|cluster/test_placements.py::test_every_attempt_is_placed_without_a_request_for_its_pod
missing placements are written later|the missing ones only|cluster/test_placements.py::test_a_runner_that_comes_back_writes_what_is_missing_and_changes_nothing_else
what is compared runs on one node|one node a block|cluster/test_shared_nodes.py::test_the_cells_of_a_block_run_on_one_node_and_the_blocks_on_all
a block whose node went runs elsewhere|all records|cluster/test_shared_nodes.py::test_a_cell_whose_node_went_away_runs_on_another_one
containers that a policy adds end no Job late|records that name them|cluster/test_sidecars.py::test_a_container_that_a_policy_adds_is_told_and_recorded_and_keeps_no_job_from_ending
pods are admitted under restricted|no warning|cluster/test_rendering.py::test_a_pod_is_admitted_under_restricted_without_a_warning_and_guaranteed
what render writes is what run submits|equal Jobs|cluster/test_render.py::test_each_file_is_the_job_that_the_runner_would_submit
a new token replaces one that ended|the run goes on|cluster/test_credentials.py::test_a_run_goes_on_with_the_token_that_takes_the_place_of_one_that_ended
the role allows what commands use and no more|every right used|cluster/test_role.py::test_the_commands_use_all_of_the_role_and_nothing_else
a user named at setup can run, cancel and clean|and sees no Secret|cluster/test_setup.py::test_a_user_named_at_setup_can_run_cancel_and_clean_and_see_no_secret
doctor finds nothing where all is there|nothing changed|cluster/test_doctor_nodes.py::test_nothing_fails_where_everything_is_there
the chart leaves nothing|no object of it|cluster/test_chart.py::test_install_upgrade_rollback_and_uninstall_leave_nothing
a scheduled run reports at its deadline|a report, what is missing named|cluster/test_chart_runs.py::test_a_scheduled_run_asks_for_what_its_role_allows_and_reports_at_its_deadline_what_is_missing
a reclaimed cell of a queue is measured again|one ok record, disruption counted|cluster/kueue/test_cohort.py::test_a_reclaimed_cell_is_measured_again_and_counted_as_disrupted
whatever happens, every repeat has its record|terminal records in a real cluster|e2e/test_end_to_end.py::test_every_planned_repeat_has_its_terminal_record_whatever_happens
a record that missed the store is taken from the log|its record|e2e/test_end_to_end.py::test_a_record_that_could_not_reach_the_store_is_taken_from_the_log
a slower night is measured again and told once|a suspicion, its decision, one notice|e2e/test_nights.py::test_a_cell_that_is_slowed_in_the_third_night_is_measured_again_and_told_once
""".strip().splitlines()
)
