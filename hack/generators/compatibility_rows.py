"""What users of the Go operator (release 0.8.2) rely on, one row each, with how it is here and the tests that show it.

A test is `<path below test/>::<name>`; one that does not exist is an error of `hack/generate`.
"""

from typing import Final, NamedTuple

# ruff: noqa: E501 - a table: a row is a line


class Row(NamedTuple):
    """One behaviour.

    Attributes:
        what: The behaviour, as a user sees it.
        verdict: One of `SAME`, `BETTER`, `ABSENT`.
        how: What differs, or why it is not there; "" for what is the same.
        tests: That show it.
        anchor: By which `test/conformance/differences.toml` links to the row; "" where nothing does.
    """

    what: str
    verdict: str
    how: str
    tests: tuple[str, ...]
    anchor: str = ""


SAME: Final = "same"
BETTER: Final = "better"
ABSENT: Final = "not there"

_PARSE = "unit/api/test_parse.py::"
_ADMISSION = "e2e/test_admission.py::"
_MANIFESTS = "unit/test_manifests.py::"
_STATUS = "unit/controller/status/test_status.py::"
_CONDITIONS = "unit/controller/status/test_conditions.py::"
_SYNC = "unit/controller/test_sync.py::"
_RESTARTS = "unit/controller/test_restarts.py::"
_SUSPEND = "unit/controller/test_suspend.py::"
_CLEANUP = "unit/controller/test_cleanup.py::"
_PHASES = "unit/controller/test_phases.py::"
_SECRETS = "unit/controller/write/test_ssh_secrets.py::"
_OPERATOR = "unit/test_operator.py::"
_LAUNCHER = "unit/controller/objects/test_launcher_job.py::"
_WORKER = "unit/controller/objects/test_worker_pod.py::"
_HOSTS = "unit/controller/objects/test_hostfile.py::"
_GROUP = "unit/controller/gang/test_pod_group.py::"
_NATIVE = "unit/controller/gang/test_pod_group_native.py::"
_GANG = "unit/controller/gang/test_gang.py::"
_CONFORMANCE = "conformance/test_recordings.py::"
_FIELDS = f"{_CONFORMANCE}test_objects_are_those_of_the_recording_but_for_listed_differences"
_PI = "e2e/test_pi.py::"
_FLAGS = "unit/cli/test_flags.py::"
_METRICS = "unit/test_metrics.py::"
_REFUSED = (f"{_ADMISSION}test_the_server_refuses_what_is_wrong_and_says_why", "unit/api/test_validation.py::test_validation")
_DEFAULTS = (f"{_PARSE}test_every_default_of_the_contract_is_applied",)

# fmt: off
CHAPTERS: Final[dict[str, tuple[Row, ...]]] = {
    "The resource": (
        Row("`mpijobs.kubeflow.org`, version `v2beta1`, namespaced, with a status subresource", SAME, "", ("e2e/test_manifests.py::test_the_definition_is_established_and_small_enough_for_plain_apply", "e2e/test_documents.py::test_get_crd_shows_the_resource")),
        Row("`kubectl explain mpijob.spec` describes every field", SAME, "", (f"{_MANIFESTS}test_every_field_of_ours_is_described", "e2e/test_manifests.py::test_every_field_of_the_spec_is_explained")),
        Row("`kubectl get mpijobs` shows name and age", BETTER, "state, workers and duration too, from `status.summary`", (f"{_MANIFESTS}test_columns_answer_how_is_my_job", f"{_PI}test_kubectl_get_says_how_the_job_is", f"{_STATUS}test_durations_read_as_in_kubectl")),
        Row("An invalid job is found by the operator", BETTER, "the API server refuses it, by CEL and enums; the operator reaches the same verdict on jobs that were stored anyway", (*_REFUSED, f"{_ADMISSION}test_the_operator_comes_to_the_same_verdict"), "invalid"),
        Row("Pod templates have the types of their fields; unknown fields are dropped", BETTER, "the fields are those of a newer Kubernetes (1.37): an older API server drops or refuses the new ones in Pods, and the condition Warnings names them", (f"{_MANIFESTS}test_pod_templates_have_types", f"{_MANIFESTS}test_types_in_pod_templates_are_those_of_kubernetes", f"{_MANIFESTS}test_unknown_fields_are_dropped_everywhere", f"{_ADMISSION}test_clients_that_ignore_warnings_lose_unknown_fields_only", f"{_ADMISSION}test_fields_that_only_a_newer_kubernetes_knows_are_stored"), "unknown-fields"),
        Row("No job that the API server stores keeps it from listing the others, however deep it is", SAME, "", (f"{_ADMISSION}test_a_deep_job_is_refused_or_loses_what_is_deep", f"{_ADMISSION}test_a_deep_patch_of_a_job_stops_nobody", f"{_ADMISSION}test_a_wide_job_stops_nobody")),
        Row("The CRD is too large for client-side `kubectl apply`", BETTER, "it fits", (f"{_MANIFESTS}test_the_crd_is_small_enough_for_plain_apply",)),
        Row("Six fields have defaults in the CRD; the others are defaulted in memory, so that stored objects do not change", SAME, "", (f"{_MANIFESTS}test_only_the_listed_fields_and_keys_of_lists_have_defaults", f"{_ADMISSION}test_defaults_are_stored_for_the_listed_fields_only", f"{_PI}test_the_stored_spec_is_what_the_user_wrote")),
        Row("Required: mpiReplicaSpecs; type and status of a condition; conditions are a map by type; deprecated labelSelector is accepted", SAME, "", (*_REFUSED, "unit/api/test_status.py::test_of_two_conditions_with_one_type_the_later_one_counts_at_its_place", "unit/api/test_status.py::test_every_status_makes_the_round_trip")),
        Row("spec.slotsPerWorker: 1, not negative", SAME, "", (*_DEFAULTS, *_REFUSED)),
        Row("spec.runLauncherAsWorker: false", SAME, "", _DEFAULTS),
        Row("spec.sshAuthMountPath: /root/.ssh; empty means the default", SAME, "", (*_DEFAULTS, f"{_PARSE}test_empty_and_null_mean_the_default_where_the_go_operator_says_so")),
        Row("spec.launcherCreationPolicy: AtStartup or WaitForWorkersReady; anything else waits", BETTER, "anything else is refused", (*_DEFAULTS, *_REFUSED)),
        Row("spec.mpiImplementation: OpenMPI, Intel or MPICH", SAME, "", (*_DEFAULTS, *_REFUSED)),
        Row("spec.runPolicy.cleanPodPolicy: None, Running or All", SAME, "", (*_DEFAULTS, *_REFUSED)),
        Row("spec.runPolicy: ttlSecondsAfterFinished, activeDeadlineSeconds, backoffLimit are unset or not negative", SAME, "", (*_DEFAULTS, *_REFUSED)),
        Row("spec.runPolicy.suspend: false", SAME, "", _DEFAULTS),
        Row("spec.runPolicy.managedBy: ours or MultiKueue; jobs of another manager are left alone", BETTER, "and it cannot be changed, which the Go operator only documents", (f"{_SYNC}test_a_job_of_another_manager_is_left_alone", f"{_PARSE}test_only_jobs_that_name_no_other_manager_are_ours", f"{_ADMISSION}test_the_manager_of_a_job_stays")),
        Row("spec.runPolicy.schedulingPolicy: minAvailable, queue, minResources, priorityClass, scheduleTimeoutSeconds", SAME, "", (f"{_PARSE}test_values_that_are_said_are_kept", *_REFUSED)),
        Row("spec.mpiReplicaSpecs: Launcher and Worker, each `{replicas, template, restartPolicy}`", SAME, "", (f"{_PARSE}test_values_that_are_said_are_kept", *_REFUSED)),
        Row("Launcher: required, one replica, at least one container, restartPolicy OnFailure", SAME, "", (*_DEFAULTS, *_REFUSED)),
        Row("Worker: at least one replica where present, restartPolicy Never; may be absent", BETTER, "without `replicas` it has one, as Kueue counts, and is not refused", (*_DEFAULTS, *_REFUSED, f"{_PARSE}test_a_launcher_on_its_own_has_no_workers")),
        Row("restartPolicy: Never or OnFailure", SAME, "", _REFUSED),
        Row("The name of the last worker has to be a DNS label of at most 63 characters", SAME, "", (*_REFUSED, f"{_ADMISSION}test_the_name_is_judged_again_when_there_come_to_be_more_workers")),
        Row("A container without a name is refused", BETTER, "it is called launcher or worker", (f"{_PARSE}test_an_unnamed_container_is_named_after_its_role_and_the_stored_object_stays_as_it_was", "e2e/test_documents.py::test_dranets_job_needs_no_name_of_its_launchers_container")),
        Row("status: conditions, replicaStatuses, startTime, completionTime, in the Go operator's form", SAME, "ours are added at the end: lastFailure, summary", ("unit/api/test_status.py::test_the_wire_form_is_that_of_the_go_operator_with_our_additions_last", f"{_PI}test_start_and_end_have_their_times"), "status"),
    ),
    "Conditions, counts and events": (
        Row("Created: reason MPIJobCreated, its message, a Normal event", SAME, "", (f"{_STATUS}test_messages_are_those_of_the_contract", f"{_STATUS}test_transitions")),
        Row("Running: reason MPIJobRunning, its message, a Normal event without the final dot", SAME, "", (f"{_STATUS}test_conditions", f"{_STATUS}test_transitions", f"{_PI}test_conditions_show_the_whole_run")),
        Row("Running is False with reason MPIJobSuspended while suspended", SAME, "", (f"{_STATUS}test_conditions", "e2e/test_suspend.py::test_a_suspended_job_comes_back_where_the_queue_wants_it")),
        Row("Suspended: MPIJobSuspended or MPIJobResumed, with events; a resume sets startTime again", SAME, "", (f"{_STATUS}test_transitions", f"{_STATUS}test_resuming_sets_the_start_anew_and_suspending_keeps_it", f"{_SUSPEND}test_resuming_sets_the_start_time_anew_and_records_it_once")),
        Row("The condition Suspended is set as soon as the spec asks for it; `active` of replicaStatuses shows when no pod is left", SAME, "", (f"{_SUSPEND}test_suspended_is_set_at_once_and_the_counts_show_when_no_pod_is_left",)),
        Row("Succeeded: reason MPIJobSucceeded, a Normal event", SAME, "", (f"{_STATUS}test_messages_are_those_of_the_contract", f"{_STATUS}test_transitions")),
        Row("Failed: the launcher Job's own reason and message, else MPIJobFailed; a Warning event", SAME, "", (f"{_STATUS}test_conditions", f"{_STATUS}test_transitions", f"{_SYNC}test_a_failing_launcher_fails_the_job")),
        Row("Failed with MPIJobEvicted: `k/n workers are evicted`, a Warning event", SAME, "", (f"{_SYNC}test_an_evicted_worker_ends_the_job_and_its_launcher", "e2e/test_cleanup.py::test_an_evicted_worker_ends_the_job_and_its_launcher")),
        Row("BackoffLimitExceeded gets the reason and message of the last failed launcher pod, cut to 1024 bytes; often empty", BETTER, "filled from the container's end: pod, node, container, exit code; kept when the pod is gone; never cut inside a character", ("unit/controller/observe/test_launcher_failures.py::test_the_containers_end_is_added_to_a_backoff_limit", f"{_SYNC}test_the_cause_of_a_failure_outlives_its_pod", "unit/kube/test_text.py::test_a_cut_is_never_inside_a_character", "e2e/test_lifecycle.py::test_a_launcher_that_fails_makes_the_job_fail_with_its_reason")),
        Row("The end turns only the status of Running to False: times, reason and message stay", SAME, "", (f"{_CONDITIONS}test_turning_false_leaves_times_reason_and_place", f"{_PI}test_the_times_of_running_stay_when_it_ends")),
        Row("Succeeded turns an earlier Failed to False", SAME, "", (f"{_STATUS}test_a_success_after_a_failure_turns_failed_to_false",)),
        Row("A condition is rewritten when status or reason change, not for its message; a rewritten one moves to the end; lastTransitionTime moves with the status alone", SAME, "", (f"{_CONDITIONS}test_a_message_alone_is_no_change", f"{_CONDITIONS}test_another_reason_is_written_at_the_end_but_the_transition_time_stays", f"{_CONDITIONS}test_another_status_moves_the_transition_time")),
        Row("Once True, Running stays so until the end or a suspend; it never returns after the end", SAME, "", (f"{_STATUS}test_conditions", f"{_PHASES}test_a_worker_that_ends_is_kept_and_ends_nothing", "unit/controller/test_simulation.py::test_any_life")),
        Row("A job that ends before it was seen running gets Running False with a message of its own and the times of its end", SAME, "", (f"{_STATUS}test_never_seen_running_is_said_with_the_time_of_completion",)),
        Row("completionTime is the launcher Job's own on success, now on failure", SAME, "", (f"{_STATUS}test_times_of_a_job_that_succeeds", f"{_STATUS}test_a_failed_job_ends_now")),
        Row("Running needs a running launcher pod and every worker pod running", SAME, "", (f"{_STATUS}test_conditions",)),
        Row("replicaStatuses: launcher pods by phase and from the Job, workers by phase, terminating ones too until they are gone; Worker is empty once the launcher is done", SAME, "", (f"{_STATUS}test_replica_statuses", f"{_STATUS}test_the_counts_of_a_finished_job_without_launcher_job_reach_0_and_not_before_its_workers_are_gone", f"{_PI}test_replicas_are_counted_while_it_runs_and_at_the_end")),
        Row("selector, labelSelector and lastReconcileTime are written at each sync", BETTER, "never: a write a sync otherwise", (f"{_STATUS}test_replica_statuses", f"{_PI}test_start_and_end_have_their_times", f"{_SYNC}test_a_job_that_is_up_to_date_costs_no_write")),
        Row("A job created suspended: Created True, Suspended True, Running False, no startTime; suspending does not clear it", SAME, "", (f"{_SUSPEND}test_a_job_created_suspended_has_all_but_its_pods_and_no_start", f"{_STATUS}test_a_job_created_suspended_has_no_start", "e2e/test_suspend.py::test_a_job_created_suspended_has_all_but_pods_and_starts_when_it_is_let_go")),
        Row("Events come from `mpi-job-controller`", SAME, "", ("unit/test_events.py::test_an_event_has_what_describe_shows_and_what_the_reference_writes", f"{_PI}test_each_event_comes_once")),
        Row("ValidationError event, no retry; no Created condition", BETTER, "and the condition Stalled; an edit that repairs the job starts it", (f"{_SYNC}test_an_invalid_job_says_so_once_and_can_be_repaired", "e2e/test_invalid.py::test_F54_invalid_jobs_that_were_stored_anyway_get_a_condition_and_disturb_nobody")),
        Row("ErrResourceExists event", BETTER, "once, with the kind, and the condition Stalled", (f"{_PHASES}test_E57_E58_F60_an_object_in_the_way_is_not_touched_and_reported_once_and_then_the_job_continues",)),
        Row("SetPodTemplateRestartPolicy event", SAME, "", (f"{_SYNC}test_templates_with_a_restart_policy_are_warned_of",)),
        Row("MPIJobFailed event for Pods that cannot be created", BETTER, "once, with the reason of the refusal (QuotaExceeded, Forbidden, ValidationError, WriteFailed), and the condition Reconciling or Stalled; MPIJobFailed is left to failed jobs", (f"{_SYNC}test_E56_a_quota_is_asked_few_times_and_the_job_says_why_it_waits", f"{_STATUS}test_a_stall_has_one_event_with_the_reason_that_users_know")),
        Row("A job that waits reports nothing", BETTER, "the condition Reconciling reports why at once, and what to do; Stalled follows after a grace period: [all causes](reference/causes.md), [kstatus](gitops.md)", ("unit/controller/status/test_reconciling.py::test_each_cause_has_a_grace_period", "e2e/test_causes.py::test_F69_a_job_says_why_it_waits", "unit/controller/write/test_warning_events.py::test_events_say", "unit/controller/status/test_stalled.py::test_problem", f"{_PHASES}test_a_launcher_that_waits_for_a_worker_that_has_ended_says_so"), "kstatus"),
        Row("A worker that crashes over and over, or ends, while the job runs is not shown", BETTER, "the condition Degraded, with the same reasons; the worker does not count in the column WORKERS", (f"{_STATUS}test_conditions", "unit/controller/status/test_stalled.py::test_problem")),
        Row("Running although the launcher or a worker crashes over and over", BETTER, "Running becomes True once none of them waits to be restarted", (f"{_STATUS}test_conditions", "e2e/test_causes.py::test_F69_a_job_says_why_it_waits"), "crash-loop"),
        Row("What the API server warns of, such as a deprecated label in a Pod template, is lost", BETTER, "the condition Warnings, and one event", ("unit/controller/status/test_template_warnings.py::test_the_servers_warnings_are_shown_once", "e2e/test_causes.py::test_what_the_api_server_warns_of_in_a_template_is_shown")),
        Row("Two conditions to wait for the end of a job", BETTER, "Finished is True for either end, with its type as the reason; it precedes the last condition", (f"{_STATUS}test_the_last_condition_is_the_state_of_the_job",), "finished"),
        Row("No status when a write failed", BETTER, "it is written on the error path too", (f"{_SYNC}test_a_failed_write_is_repeated_and_nothing_is_made_twice",)),
        Row("Events and counters may come more than once", BETTER, "each once, after the status that it reports is stored", (f"{_SYNC}test_an_event_is_recorded_once_though_the_status_was_refused_at_first", f"{_PHASES}test_each_event_of_a_long_lifecycle_is_recorded_once_despite_many_syncs", "unit/controller/test_simulation.py::test_any_life"), "events-once"),
        Row("Each lost Pod costs a retry, and an evicted worker the job", BETTER, "the same by default; with the annotation `mpiop.kubeflow.org/max-restarts` [the job is restarted](fault-tolerance.md#restarts), out of a budget of its own", ("e2e/test_restarts.py::test_a_loss_costs_a_restart_and_no_retry", f"{_RESTARTS}test_each_loss_restarts_the_job_once_whichever_write_was_the_last_of_its_leader")),
        Row("A worker that its kubelet rejected stays Failed, for example after a GPU node restarted", BETTER, "no container started, so nothing is lost: [it is created again](fault-tolerance.md#workers) after 10 s, 20 s … 5 minutes; the cause is `WorkerRejected`", ("e2e/test_limits.py::test_a_worker_without_room_on_its_node_is_created_again_until_there_is_room", "e2e/test_limits.py::test_a_worker_that_its_kubelet_rejected_is_created_again", "unit/controller/test_rejections.py::test_a_rejected_worker_is_created_again_more_and_more_slowly")),
        Row("A Hydra launcher that has lost a worker hangs", BETTER, "`Degraded` reports it, and after `--lost-worker-timeout` the job is restarted", ("e2e/test_restarts.py::test_a_launcher_of_hydra_that_hangs_without_its_worker_is_ended", f"{_RESTARTS}test_a_try_that_hangs_without_its_worker_is_ended_after_a_while_if_it_surely_cannot_go_on")),
        Row("The cause of a failure goes with its pod", BETTER, "it is kept in `status.lastFailure` as soon as it is seen, and in Failed; `status.attempts` has the last three attempts", (f"{_CLEANUP}test_a_time_to_live_of_0_is_over_once_the_end_is_recorded", f"{_SYNC}test_the_cause_of_a_failure_outlives_its_pod"), "cause"),
        Row("Failed names the launcher's Pod, and often nothing else", BETTER, "a verdict: the worker that was lost, what Kubernetes reports, or what the end of the log reports ([how failed jobs read](reference/causes.md#how-failed-jobs-read)). The reason stays that of the Pod", ("e2e/test_causes.py::test_a_failed_job_reads_as_the_page_shows", "unit/controller/status/test_verdict.py::test_the_cause_of_a_failed_attempt", "unit/api/test_log_rules.py::test_a_log_explains_a_failure")),
    ),
    "The objects of a job": (
        Row("Each has a controller owner reference to the MPIJob; Service, ConfigMap, Secret and Job have `app: <job>`", SAME, "", (_FIELDS, f"{_PI}test_every_object_belongs_to_the_job", "unit/controller/test_names.py::test_children_carry_app_beside_what_we_select_by")),
        Row("No other label than `app` on Service, ConfigMap, Secret and Job", BETTER, "the two that its Pods have, too: so the operator watches its own objects only", (_FIELDS, "unit/controller/test_names.py::test_children_carry_app_beside_what_we_select_by"), "labels"),
        Row("No annotations", BETTER, "under `mpiop.kubeflow.org/` on ConfigMap, Job and Pods: what has to be remembered of them, and files of their containers", (_FIELDS,), "annotations"),
        Row("mpirun calls the image's ssh", BETTER, "by way of a script, from a volume of its own at `/etc/mpi-hosts`", (_FIELDS,), "ssh-agent"),
        Row("All else of every object, field by field, at each stage of 18 recorded jobs", SAME, "([list of all differences](../test/conformance/differences.toml))", (_FIELDS, f"{_CONFORMANCE}test_each_listed_difference_occurs")),
        Row("Service, ConfigMap, Secret and launcher Job exist as soon as the job does, suspended or not", SAME, "within a second", (f"{_CONFORMANCE}test_what_a_job_needs_exists_within_a_second",)),
        Row("What others hold is left alone: after its creation the launcher Job is written for suspend, resume and its scheduling directives only", SAME, "", ("conformance/test_writes.py::test_nothing_is_written_that_stays_as_it_is_in_the_recording", "conformance/test_writes.py::test_a_client_that_holds_on_to_a_version_is_not_refused")),
        Row("Service `<job>`: headless, its selector; publishes pods that are not ready where the launcher is a worker", BETTER, "and with Intel MPI and MPICH on the network of their nodes, whose daemons call the launcher back by its name; otherwise by its address ([ADR 0016](adr/0016-start-in-band.md))", (_FIELDS, "unit/controller/objects/test_service.py::test_a_launcher_that_must_be_found_is_published_before_it_is_ready", "e2e/test_mpi.py::test_daemons_need_no_name_of_their_launcher")),
        Row("ConfigMap `<job>-config`: `hostfile`, a line a host, in the form of the MPI library; the launcher first where it is a worker", SAME, "", (f"{_HOSTS}test_hostfile", f"{_HOSTS}test_every_host_is_listed_once_by_index", f"{_PHASES}test_a_launcher_as_worker_is_the_first_host_with_workers_and_without")),
        Row("ConfigMap `<job>-config`: `discover_hosts.sh` names the running workers, sorted as strings, until the launcher is done", SAME, "", (f"{_HOSTS}test_discover_hosts_sorts_as_strings", f"{_HOSTS}test_discover_hosts_runs", f"{_PHASES}test_scaling_follows_in_pods_and_in_both_lists_of_hosts", "e2e/test_lifecycle.py::test_scaling_down_and_up_follows_the_wish")),
        Row("Secret `<job>-ssh`: type, keys, PEM", BETTER, "the same type, ECDSA P-521, by default (`--ssh-key-type`), but made once, immutable, never recreated while pods use its key", ("unit/controller/write/test_ssh_keys.py::test_form_of_the_pair", f"{_PI}test_service_config_map_and_secret_are_as_described", f"{_SECRETS}test_while_pods_run_with_its_key_another_is_not_made_and_the_job_says_what_to_do"), "secret"),
        Row("A lost Secret is recreated at the next sync, and pods with the old key no longer reach the new ones", BETTER, "recreated when no pod holds the old key, else Stalled explains what to do", (f"{_SECRETS}test_a_lost_secret_is_made_anew_at_the_resume", f"{_SECRETS}test_a_secret_lost_before_any_pod_began_is_made_anew", "e2e/test_cleanup.py::test_a_key_that_is_lost_while_pods_run_changes_nothing_and_the_resume_makes_another")),
        Row("Pods `<job>-worker-<i>`", SAME, "", ("unit/controller/test_names.py::test_children_are_called_after_the_job", _FIELDS)),
        Row("Job `<job>-launcher`: time to live, deadline and back-off limit passed on; podReplacementPolicy Failed; suspend", BETTER, "its `ttlSecondsAfterFinished` is 600 at least, so that the end is recorded before the Job goes; the operator deletes it at the time that the MPIJob sets", (f"{_LAUNCHER}test_limits_are_passed_on_but_a_time_to_live_that_could_end_before_the_end_is_recorded", "unit/controller/observe/test_deleted_launchers.py::test_a_launcher_that_was_deleted_before_a_sync_ends_its_job_as_it_did", f"{_PI}test_the_launcher_job_lets_no_second_pod_start_beside_a_dying_one")),
        Row("PodGroup `<job>` with gang scheduling", SAME, "", (f"{_GANG}test_the_gang_is_made_before_its_pods_and_only_once",)),
        Row("Labels of every pod: operator-name, job-name, job-role; they win over the template's; no `app` on workers", SAME, "", ("unit/controller/test_names.py::test_pod_labels", f"{_WORKER}test_labels_and_annotations_of_the_template_are_kept_and_ours_win", f"{_PI}test_pods_carry_the_labels_that_others_select_by")),
        Row("replica-index of workers, shifted by one, and 0 on the launcher, where the launcher is a worker", SAME, "", (f"{_WORKER}test_replica_index_leaves_room_for_a_launcher_that_works", f"{_LAUNCHER}test_a_launcher_that_works_keeps_its_gpus_and_is_replica_0")),
        Row("The older labels mpi_job_name and mpi_role_type are gone", BETTER, "they are set too, as older documents select by them", ("unit/controller/test_names.py::test_pod_labels", "e2e/test_documents.py::test_the_launchers_log_is_found_by_the_older_labels"), "older-labels"),
        Row("Host name and subdomain of pods", SAME, "", (_FIELDS, f"{_PI}test_workers_are_numbered_named_and_reachable_by_ssh")),
        Row("dnsPolicy ClusterFirstWithHostNet with hostNetwork", SAME, "", (f"{_WORKER}test_dns_policy", f"{_LAUNCHER}test_dns_policy_follows_the_host_network_and_searches_stay")),
        Row("Workers search `<job>.<namespace>.svc.cluster.local`", BETTER, "by `--cluster-domain`", (f"{_WORKER}test_siblings_are_found_by_their_short_names", f"{_SYNC}test_the_domain_of_the_cluster_is_what_the_flag_says")),
        Row("A worker's first container runs sshd if it has no command and no args", SAME, "", (f"{_WORKER}test_sshd_runs_where_nothing_was_said",)),
        Row("K_MPI_JOB_ROLE, and on the launcher the variables of the MPI library", SAME, "those of Open MPI 5 and MPICH 4 too, and of what is called for ssh. These additions give way to the user's `env` and `envFrom` ([ADR 0030](adr/0030-defaults-after-env-from.md))", ("unit/controller/objects/test_launcher_environment.py::test_variables_of_the_launcher", f"{_PI}test_the_launcher_knows_hosts_and_slots_whatever_the_open_mpi", _FIELDS), "variables"),
        Row("Volume ssh-auth in the first container of both roles; mode 0600 for root's path alone", SAME, "", (f"{_WORKER}test_only_roots_keys_are_for_their_owner_alone", "e2e/test_images.py::test_the_example_runs_as_root_with_nothing_but_defaults", f"{_PI}test_the_example_computes_pi_on_every_worker_at_the_first_try")),
        Row("Volume mpi-job-config at /etc/mpi: hostfile 0444, discover_hosts.sh 0555", SAME, "what is ours is in a volume of its own, mpi-hosts at /etc/mpi-hosts", (_FIELDS, f"{_LAUNCHER}test_what_the_user_mounts_at_etc_mpi_stays")),
        Row("The launcher takes no GPU unless it is a worker", SAME, "", (f"{_LAUNCHER}test_a_launcher_that_works_keeps_its_gpus_and_is_replica_0", "e2e/test_documents.py::test_the_workers_have_the_gpus_and_the_launcher_has_none")),
        Row("Only the first container is set up", SAME, "", (f"{_WORKER}test_only_the_first_container_is_set_up",)),
        Row("The operator's variables win over the user's", BETTER, "a variable that the user set is left alone, NVIDIA_* excepted", (f"{_LAUNCHER}test_variables_of_the_user_win_except_for_the_gpus", f"{_WORKER}test_a_variable_that_the_user_set_is_left_alone")),
        Row("Fields of templates that the operator does not know are passed on", SAME, "", (f"{_WORKER}test_a_field_that_we_do_not_know_is_kept", "e2e/test_documents.py::test_native_sidecars_do_not_keep_a_job_from_its_end")),
        Row("An image has sshd, ssh and a user", BETTER, "or none of them: with the annotation `mpiop.kubeflow.org/ssh: Injected`, the operator provides both ([plain-images.md](plain-images.md))", ("unit/controller/objects/test_injected_ssh.py::test_an_image_that_has_ssh_gets_nothing", "unit/controller/objects/test_injected_ssh.py::test_both_pods_get_the_program_and_the_key", "e2e/test_plain.py::test_every_worker_has_its_rank_at_the_first_try"), "plain-images"),
    ),
    "The life of a job": (
        Row("A job that is gone, being deleted or another's is left alone", SAME, "", (f"{_PHASES}test_a_job_that_is_being_deleted_is_left_to_the_garbage_collector", f"{_PHASES}test_of_a_deleted_job_nothing_is_left_and_a_namesake_starts_afresh", "e2e/test_lifecycle.py::test_a_job_deleted_in_the_middle_leaves_nothing")),
        Row("A namespace that is being deleted", BETTER, "is not an error of the job: no event, no failure is counted, and retries back off", ("e2e/test_lifecycle.py::test_namespaces_deleted_in_the_middle_are_no_failures_of_their_jobs", f"{_PHASES}test_a_namespace_on_its_way_out_is_no_problem_of_the_job", "unit/controller/test_own_writes.py::test_E59_in_a_terminating_namespace_nothing_is_reported_and_retries_grow_rare")),
        Row("A finished job: workers and PodGroup go by cleanPodPolicy; Running keeps workers that are neither Running nor Pending", BETTER, "a worker of which the node is silent (phase Unknown) goes too", (f"{_CLEANUP}test_workers_stay_by_policy_and_phase_however_the_job_ended", f"{_GANG}test_at_the_end_the_gang_goes_with_the_workers", "e2e/test_cleanup.py::test_workers_go_by_policy_and_the_launcher_stays_for_its_log")),
        Row("startTime comes first, unless suspended", SAME, "", (f"{_STATUS}test_times_of_a_job_that_succeeds", f"{_STATUS}test_a_job_created_suspended_has_no_start")),
        Row("Service, ConfigMap, Secret and the launcher Job exist while suspended; workers and PodGroup wait for the resume", SAME, "", (f"{_SUSPEND}test_a_job_created_suspended_has_all_but_its_pods_and_no_start", f"{_GANG}test_a_suspended_job_has_no_gang")),
        Row("A deleted worker is made again; one that ended is kept and not replaced; only the launcher Job ends a job", SAME, "", (f"{_PHASES}test_a_child_deleted_by_hand_comes_back_or_ends_the_job_or_is_not_needed_any_more", f"{_PHASES}test_a_worker_that_ends_is_kept_and_ends_nothing", "e2e/test_lifecycle.py::test_a_worker_that_is_deleted_comes_back_and_the_launcher_decides")),
        Row("A deleted Service, ConfigMap, Secret or launcher Job", BETTER, "recreated by the rule of its kind and phase; a launcher that may have run is not run twice", (f"{_PHASES}test_a_child_deleted_by_hand_comes_back_or_ends_the_job_or_is_not_needed_any_more",)),
        Row("An evicted worker", BETTER, "ends the job: Failed, completionTime, launcher stopped, clean-up", (f"{_CLEANUP}test_no_launcher_runs_on_and_one_that_ended_stays_for_its_log", "e2e/test_cleanup.py::test_an_evicted_worker_ends_the_job_and_its_launcher"), "evicted"),
        Row("AtStartup: the launcher starts with the workers and fails until they answer", BETTER, "its first attempt succeeds: `mpirun` waits for them ([ADR 0016](adr/0016-start-in-band.md))", (f"{_PI}test_the_example_computes_pi_on_every_worker_at_the_first_try", "e2e/test_start.py::test_a_launcher_waits_for_late_workers_and_says_for_which", "e2e/test_start.py::test_without_an_operator_workers_are_found_by_their_names", "e2e/test_mpi.py::test_every_worker_has_its_ranks_at_the_first_try")),
        Row("WaitForWorkersReady: the launcher is made when every worker is Ready", BETTER, "of the desired ones; checked again after each resume; without workers at once", (f"{_SUSPEND}test_waiting_for_workers_is_judged_anew_after_a_resume", "unit/controller/plan/test_desired.py::test_desired")),
        Row("Scaling while it runs: surplus workers go, new ones come, the hostfile follows", SAME, "", (f"{_PHASES}test_scaling_follows_in_pods_and_in_both_lists_of_hosts", "e2e/test_lifecycle.py::test_scaling_down_and_up_follows_the_wish")),
        Row("Suspend: the launcher Job is suspended, workers and PodGroup go", BETTER, "workers that had ended go too", (f"{_SUSPEND}test_a_worker_that_had_ended_does_not_fail_the_job_after_its_resume", "e2e/test_suspend.py::test_a_suspended_job_comes_back_where_the_queue_wants_it")),
        Row("Resume: nodeSelector, tolerations and schedulingGates of the launcher follow its template, labels and annotations are merged", BETTER, "nodeAffinity and the limits too; the launcher is let go only when its pod is gone", ("unit/controller/plan/test_suspension.py::test_the_template_follows_in_the_patch_that_lets_it_go", f"{_SUSPEND}test_the_launcher_follows_the_directives_of_scheduling_before_it_is_let_go", f"{_SUSPEND}test_a_launcher_that_still_runs_is_not_let_go_again", "e2e/test_suspend.py::test_a_suspended_job_comes_back_where_the_queue_wants_it")),
        Row("An edit of anything else has no effect, without any message", BETTER, "it takes effect at the next start, and the condition UpdatePending reports it until then", (f"{_SUSPEND}test_an_edit_of_a_running_job_is_said_to_be_pending_until_the_next_start", f"{_SUSPEND}test_an_edit_that_a_job_cannot_follow_replaces_the_launcher_before_the_resume_is_reported", "unit/controller/objects/test_revision.py::test_what_changes_a_revision", "e2e/test_suspend.py::test_an_edit_of_a_running_job_is_pending_and_takes_effect_after_suspend_and_resume")),
        Row("Suspend and restored templates may come in one edit, as Kueue does it; workers are made from the template as it is then", SAME, "", (f"{_SUSPEND}test_suspending_and_restoring_templates_in_one_edit_is_for_the_next_start", f"{_SUSPEND}test_workers_are_made_from_the_template_as_it_is_then")),
        Row("An object that has the name of a child and is not the job's is never changed", BETTER, "it is checked again rarely, and the job continues when it is gone", (f"{_PHASES}test_E57_E58_F60_an_object_in_the_way_is_not_touched_and_reported_once_and_then_the_job_continues", "unit/controller/test_own_writes.py::test_E58_a_name_that_stays_taken_is_checked_rarely_and_reported_once")),
        Row("Owners are known by UID", SAME, "", (f"{_PHASES}test_a_pod_with_the_jobs_labels_but_another_owner_is_none_of_its_workers", f"{_SYNC}test_E58_a_child_of_a_deleted_namesake_is_waited_for", "unit/controller/write/test_apply.py::test_E57_a_successor_of_the_same_name_is_not_deleted")),
        Row("Kueue: suspended, admitted, runs, finishes; active reaches 0 when no pod is left; priorities; MultiKueue", SAME, "", ("e2e/test_kueue.py::test_a_job_is_held_admitted_run_and_finished", "e2e/test_kueue.py::test_the_job_of_higher_priority_comes_first", f"{_SUSPEND}test_suspended_is_set_at_once_and_the_counts_show_when_no_pod_is_left")),
        Row("Jobs of the Go operator are taken over, and given back", SAME, "", ("e2e/test_switch.py::test_what_theirs_made_for_a_job_that_goes_on_is_kept", "e2e/test_switch.py::test_theirs_finds_every_object_of_ours_as_it_would_have_made_it", f"{_SYNC}test_children_without_our_label_are_found_by_name_and_labelled")),
    ),
    "Gang scheduling": (
        Row("Off by default; `volcano`, or the name of a coscheduling scheduler, which becomes schedulerName of all pods", SAME, "", (f"{_WORKER}test_gang_scheduling", f"{_LAUNCHER}test_gang_scheduling", "unit/controller/gang/test_discovery.py::test_off_nothing_is_asked")),
        Row("Pods carry the mark of their group: annotation for Volcano, label for coscheduling", SAME, "", ("conformance/test_gangs.py::test_pods_are_marked_and_left_to_the_scheduler", f"{_WORKER}test_gang_scheduling", f"{_GANG}test_the_gang_is_made_before_its_pods_and_only_once", "e2e/test_volcano.py::test_of_two_gangs_the_second_holds_no_pod_and_computes_when_the_first_has_ended", "e2e/test_coscheduling.py::test_of_two_gangs_the_second_holds_no_pod_and_computes_when_the_first_has_ended")),
        Row("minMember: minAvailable, else workers + 1", SAME, "", ("conformance/test_gangs.py::test_the_group_of_a_job", f"{_GROUP}test_members_and_their_resources", f"{_GANG}test_scaling_changes_how_many_are_waited_for", "e2e/test_volcano.py::test_the_group_follows_the_policy_and_the_number_of_workers_and_goes_with_the_job", "e2e/test_coscheduling.py::test_the_group_follows_the_policy_and_the_number_of_workers_and_goes_with_the_job")),
        Row("minResources: from the policy, else computed", SAME, "", (f"{_GROUP}test_members_and_their_resources",)),
        Row("queue: the policy's, else the job's annotation (Volcano)", SAME, "", (f"{_GROUP}test_the_queue",)),
        Row("priorityClassName: the policy's, else Launcher's, else Worker's (Volcano)", SAME, "", (f"{_GROUP}test_the_priority_class", f"{_GROUP}test_without_workers_the_priority_class_is_the_launchers")),
        Row("scheduleTimeoutSeconds: the policy's, else 0 (coscheduling)", SAME, "", (f"{_GROUP}test_the_timeout", f"{_GROUP}test_coscheduling")),
        Row("Computed minResources: requests (limits where missing) by order of priority, over the first minMember pods", BETTER, "counted rightly when the launcher has the lower priority", (f"{_GROUP}test_members_and_their_resources", "unit/controller/gang/test_discovery.py::test_the_values_of_priority_classes_come_from_the_server", "e2e/test_volcano.py::test_the_resources_of_the_group_are_those_of_its_most_important_pods", "e2e/test_coscheduling.py::test_the_resources_of_the_group_are_those_of_its_most_important_pods")),
        Row("An edited policy changes the PodGroup, and what others filled in stays", SAME, "", (f"{_GANG}test_an_edited_policy_changes_the_group_and_what_others_filled_in_stays", "e2e/test_volcano.py::test_the_group_follows_the_policy_and_the_number_of_workers_and_goes_with_the_job", "e2e/test_coscheduling.py::test_the_group_follows_the_policy_and_the_number_of_workers_and_goes_with_the_job")),
        Row("WaitForWorkersReady with a gang waits for ever", BETTER, "the launcher is not counted", (f"{_GROUP}test_members_and_their_resources", "e2e/test_gang.py::test_waiting_for_the_workers_does_not_wait_for_ever", "e2e/test_volcano.py::test_waiting_for_the_workers_does_not_wait_for_ever", "e2e/test_coscheduling.py::test_waiting_for_the_workers_does_not_wait_for_ever")),
        Row("Kubernetes' own gangs are not known", BETTER, "`--gang-scheduling kubernetes`", (f"{_NATIVE}test_kubernetes_1_36", f"{_NATIVE}test_kubernetes_1_37", "e2e/test_gang.py::test_a_gang_that_does_not_fit_holds_no_pod_and_computes_when_there_is_room")),
        Row("`minResources: {requests: …}`, as a document of the Go operator has it", BETTER, "is refused with the right form", ("e2e/test_documents.py::test_min_resources_as_the_document_has_them_are_refused_with_the_right_form",)),
    ),
    "The operator": (
        Row("The flags of the Go operator", SAME, "", (f"{_FLAGS}test_the_arguments_of_the_reference_s_own_manifest_are_accepted", f"{_FLAGS}test_a_flag_sets_its_option_and_no_other", "e2e/test_switch.py::test_the_old_deployment_with_its_old_flags_starts_ours")),
        Row("Defaults that throttle", BETTER, "they do not; `--kebab-case` in addition to `--kubeConfig`", (f"{_FLAGS}test_without_flags_the_options_are_the_defaults", f"{_FLAGS}test_help_names_every_flag_with_its_default")),
        Row("Names of Deployment, ServiceAccount, ClusterRole and binding, selector, labels, annotations", SAME, "", (f"{_MANIFESTS}test_the_identity_is_that_of_the_go_operator", "e2e/test_manifests.py::test_the_documents_commands_install_the_operator_standalone", "e2e/test_manifests.py::test_the_documents_commands_install_the_operator_for_kubeflow")),
        Row("ClusterRoles for users, aggregated to Kubeflow's", BETTER, "without the right to write the status", (f"{_MANIFESTS}test_users_may_not_write_the_status",)),
        Row("Go's flag syntax", SAME, "", ("unit/cli/test_goflags.py::test_arguments_are_read_as_go_reads_them",)),
        Row("klog's flags: `-v` is followed, the others are taken and ignored", SAME, "", (f"{_FLAGS}test_klog_s_verbosity_becomes_a_level", f"{_FLAGS}test_the_arguments_of_the_reference_s_own_manifest_are_accepted")),
        Row("`--namespace` defaults to `$KUBEFLOW_NAMESPACE`", BETTER, "takes several namespaces, with commas", (f"{_FLAGS}test_the_namespace_comes_from_the_environment_unless_a_flag_says_otherwise", "unit/test_operator.py::test_with_a_namespace_others_are_left_alone", "unit/test_operator.py::test_with_several_namespaces_each_is_served_and_others_are_left_alone")),
        Row("`--monitoring-port`: 0 is off, else plain HTTP on all interfaces", SAME, "", ("unit/test_server.py::test_metrics_are_scraped", "unit/test_server.py::test_every_address_of_the_host_is_served", f"{_FLAGS}test_without_flags_the_options_are_the_defaults")),
        Row("`$KUBECONFIG` wins over `--kubeConfig`", BETTER, "an explicit flag wins", ("unit/kube/test_config.py::test_the_flag_wins_over_the_environment_and_that_over_the_pod",)),
        Row("The image takes arguments only", SAME, "", ("e2e/test_images.py::test_the_operators_image_takes_arguments_only_and_is_nobody",)),
        Row("`--threadiness` syncs at a time; `--controller-queue-*` limit retries; back-off of a key from 5 ms to 1000 s", BETTER, "to 60 s, so that a job continues soon after its obstacle is gone; the limit is one for each namespace, so that failures of one do not delay the others", ("unit/test_workqueue_rate_limiters.py::test_Q46_the_delay_doubles_up_to_the_cap", "unit/test_workqueue_rate_limiters.py::test_Q47_retries_of_a_namespace_take_from_one_bucket", "unit/controller/test_controller.py::test_a_failing_sync_is_repeated_and_does_not_hold_up_others")),
        Row("Name and durations of the Lease are fixed", BETTER, "`--lease-name` and durations as flags", (f"{_FLAGS}test_a_flag_sets_its_option_and_no_other", f"{_FLAGS}test_what_makes_no_sense_is_refused")),
        Row("Health at `:8080/healthz`", BETTER, "and `/readyz`", ("unit/test_server.py::test_a_probe_says_what_is_wrong", "e2e/test_operator.py::test_every_replica_is_healthy_and_ready")),
        Row("Lease `mpi-operator` in the lock namespace: 15 s, 5 s, 3 s; either operator takes it from the other", SAME, "", ("unit/test_go_lease.py::test_L61_a_lease_that_the_go_operator_renews_is_left_to_it", "unit/test_go_lease.py::test_L65_what_we_release_is_free_for_the_go_operator")),
        Row("Counters of jobs created, successful and failed; job_info; is_leader", SAME, "", (f"{_METRICS}test_the_counters_of_the_reference_have_its_names_and_start_at_zero", f"{_PI}test_the_counters_count_it_once", f"{_PI}test_only_the_leader_shows_the_job")),
        Row("mpi_operator_job_info stays when its job goes; a document asks for mpi_operator_job_infos by pod", BETTER, "both series are there, and go with the job; only the leader shows them", (f"{_METRICS}test_a_jobs_launcher_is_shown_by_job_and_by_pod_until_the_job_goes", "e2e/test_monitoring.py::test_the_join_of_the_documents_returns_a_row_for_a_running_and_a_finished_job")),
        Row("No `…_created` series", SAME, "", (f"{_METRICS}test_no_series_tells_when_it_was_created",)),
        Row("Nothing is measured of queue, syncs, requests and watches", BETTER, "workqueue_*, syncs, requests, time to running, failures by reason, age of watches", (f"{_METRICS}test_Q49_a_work_queue_has_the_series_of_every_go_controller", f"{_METRICS}test_requests_and_informers_are_measured", f"{_METRICS}test_every_metric_is_documented_and_nothing_else_is")),
        Row("No authenticated mode of metrics", BETTER, "`--metrics-secure`: HTTPS, TokenReview and SubjectAccessReview; plain HTTP stays the default", ("unit/test_server_access.py::test_metrics_are_for_whom_the_api_server_lets_get_them", "unit/test_server_certificate.py::test_a_folders_certificate_is_shown_and_renewed_without_a_restart", "e2e/test_monitoring.py::test_secure_metrics_are_scraped_by_prometheus_with_its_own_token", "e2e/test_monitoring.py::test_secure_metrics_are_refused_to_whom_the_api_server_does_not_know_or_does_not_let", "e2e/test_operator.py::test_metrics_are_reached_by_the_service")),
        Row("Rights", BETTER, "no list of Secrets, no wildcard; deletion is what ttlSecondsAfterFinished needs", (f"{_MANIFESTS}test_the_operator_has_only_the_rights_that_it_needs", "e2e/test_operator.py::test_it_may_not_read_secrets_of_the_cluster_at_large")),
    ),
    "Known faults": (
        Row("Scaling down by one with runLauncherAsWorker deletes two workers", BETTER, "one", (f"{_PHASES}test_scaling_follows_in_pods_and_in_both_lists_of_hosts",)),
        Row("Created is recorded and counted again at every failing retry", BETTER, "once", (f"{_SYNC}test_an_event_is_recorded_once_though_the_status_was_refused_at_first",)),
        Row("Running is recorded at every sync", BETTER, "once", (f"{_PHASES}test_each_event_of_a_long_lifecycle_is_recorded_once_despite_many_syncs",)),
        Row("No status after a failed create", BETTER, "there is one, and it explains why", (f"{_SYNC}test_E56_a_quota_is_asked_few_times_and_the_job_says_why_it_waits",)),
        Row("No condition on an invalid job", BETTER, "Stalled", (f"{_SYNC}test_an_invalid_job_says_so_once_and_can_be_repaired",)),
        Row("The cached job and PodGroup are changed in place", BETTER, "nothing cached is changed", (f"{_SYNC}test_nothing_in_a_cache_is_changed_in_place_neither_the_job_nor_its_pod_group",)),
        Row("`cluster.local` is fixed", BETTER, "`--cluster-domain`", (f"{_SYNC}test_the_domain_of_the_cluster_is_what_the_flag_says",)),
        Row("Caches are filled after the election is won", BETTER, "before", (f"{_OPERATOR}test_the_caches_of_a_standby_are_warm_before_it_is_elected",)),
        Row("An SSH key is made at every sync", BETTER, "once a job", (f"{_SECRETS}test_a_secret_that_is_there_at_the_resume_stays",)),
        Row("The status of a finished job is written at every sync", BETTER, "once", (f"{_CLEANUP}test_workers_stay_by_policy_and_phase_however_the_job_ended",)),
        Row("An evicted worker marks the job Failed and never ends it", BETTER, "it ends", (f"{_SYNC}test_an_evicted_worker_ends_the_job_and_its_launcher",)),
        Row("cleanPodPolicy All leaves an active launcher", BETTER, "it is deleted; a finished one stays for its log", (f"{_CLEANUP}test_no_launcher_runs_on_and_one_that_ended_stays_for_its_log",)),
        Row("ttlSecondsAfterFinished removes the launcher Job alone", BETTER, "all objects of the job; the MPIJob too where its annotation `mpiop.kubeflow.org/ttl-deletes-job` is `true`", (f"{_CLEANUP}test_after_its_time_to_live_nothing_of_a_job_is_left_but_itself_and_its_status", f"{_CLEANUP}test_the_mpijob_goes_too_only_if_it_says_so", "e2e/test_cleanup.py::test_after_its_time_to_live_only_the_job_and_its_status_are_left")),
        Row("A job whose launcher Job vanished before its end was recorded starts again", BETTER, "Failed, reason LauncherJobNotFound", (f"{_SYNC}test_a_launcher_that_is_gone_unseen_is_not_run_again",)),
        Row("WaitForWorkersReady is ignored after a resume", BETTER, "it is not", (f"{_SUSPEND}test_waiting_for_workers_is_judged_anew_after_a_resume",)),
        Row("Suspending with cleanPodPolicy Running keeps finished workers, which fail the job after its resume", BETTER, "they go", (f"{_SUSPEND}test_a_worker_that_had_ended_does_not_fail_the_job_after_its_resume",)),
        Row("Resuming a job that ran gets 403", BETTER, "the right is there", (f"{_SUSPEND}test_the_launcher_follows_the_directives_of_scheduling_before_it_is_let_go",)),
        Row("Workers are chosen by label alone", BETTER, "by namespace, group, kind and UID of their owner, and by name", (f"{_PHASES}test_a_pod_with_the_jobs_labels_but_another_owner_is_none_of_its_workers", "unit/controller/test_ownership.py::test_E57_what_belongs_to_somebody_else_is_none", "unit/controller/test_ownership.py::test_a_worker_has_the_name_of_one")),
        Row("All Secrets of the cluster are cached", BETTER, "none", (f"{_OPERATOR}test_what_is_not_of_this_operator_is_not_even_listed",)),
        Row("401 or 403 on a watch ends the process", BETTER, "it is tried again", ("unit/informers/test_reflector_list_watch.py::test_R21_nothing_ends_the_loop_and_every_failure_is_reported",)),
        Row("Without the CRD the process exits", BETTER, "it waits", (f"{_OPERATOR}test_without_the_crd_it_waits_for_it",)),
        Row("The kind is missing in ErrResourceExists", BETTER, "it is there", (f"{_PHASES}test_E57_E58_F60_an_object_in_the_way_is_not_touched_and_reported_once_and_then_the_job_continues",)),
        Row("A lost lease is a crash, and a stop leaves the lease held for 15 s", BETTER, "an orderly end, and a released lease", (f"{_OPERATOR}test_a_planned_stop_releases_the_lease_and_another_replica_continues", f"{_OPERATOR}test_a_lost_lease_ends_the_process_and_nothing_is_written_any_more")),
    ),
}
# fmt: on
