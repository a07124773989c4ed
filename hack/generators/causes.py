"""The page docs/reference/causes.md: each reason of Stalled and Degraded, and how failed jobs read, from the operator's own tables."""

import re

from mpiop.api.log_rules import RULES
from mpiop.controller.causes import CAUSES, DEGRADING, Cause

_HEAD = """# Causes

<!-- Made by hack/generate from src/mpiop/controller/causes.py and src/mpiop/api/log_rules.py; edit those. -->

A cause explains why a job waits or is degraded. It is the reason of the condition `Reconciling`, and after a [grace period](../gitops.md)
the reason of `Stalled`. If the job is already running and other ranks may continue, it is the reason of `Degraded`.
`kubectl get mpijobs` shows the reason as `STATE`. The message of the condition names the object and the remedy.
When the cause is resolved, `Stalled` and `Degraded` become False. `Reconciling` gets another reason, or is removed.

```shell
kubectl get mpijobs
kubectl get mpijob pi -o jsonpath='{range .status.conditions[?(@.status=="True")]}{.type}: {.reason}: {.message}{"\\n"}{end}'
```

| reason | when | what to do | grace period | condition while the job runs |
|---|---|---|---|---|
"""
_FOOT = """
## As users see it

This output shows deliberately broken jobs on Kubernetes 1.36:

```console
$ kubectl get mpijobs
NAME               STATE                        WORKERS   RESTARTS   DURATION   AGE
init               InitContainerFailed          0/1       0                     47s
launcher-crashes   CrashLoopBackOff             1/1       3                     45s
no-claim           Unschedulable                0/1       0                     47s
no-config          CreateContainerConfigError   1/1       0                     47s
no-directory       StartError                   0/1       0                     45s
no-image           ImagePull                    0/1       0                     47s
no-priority        Forbidden                    0/1       0                     47s
no-volume          FailedMount                  0/1       0                     47s
out-of-memory      OOMKilled                    0/1       0                     46s
unready            Unhealthy                    1/1       0                     45s
worker-ends        WorkerEnded                  0/1       0                     46s
```

| job | message |
|---|---|
| `no-claim` | … cannot be scheduled: 0/1 nodes are available: persistentvolumeclaim "no-such-claim" not found. Request less, … |
| `no-config` | … cannot be created: configmap "no-such-config" not found. Create it, and the container starts; … |
| `no-priority` | worker pod created failed: … no PriorityClass with name no-such-priority was found. Change … |
| `no-volume` | … MountVolume.SetUp failed for volume "data" : configmap "no-such-volume" not found. Create what is missing, … |
| `out-of-memory` | … was killed, because it used more memory than its limit. Raise its memory limit. … |

If the newest event of the Pod that the job waits for is a warning, the condition can also have its reason and message.
"""


_ENDS = """
## How failed jobs read

`kubectl get mpijobs -o wide` (MESSAGE) and `kubectl mpi why` begin with the verdict. It comes from the first of these sources that
reveals the cause:

1. **A lost worker** that `mpirun` needed: `NoSshd`, `WorkerDeadlineExceeded`, `ScaledDown`, `WorkerDeleted`, `OOMKilled`,
   `Disrupted`, `NodeLost` or `WorkerEnded`. A loss counts only if `mpirun` ended within 30 s after the loss.
2. **Kubernetes' report about the launcher:** `OOMKilled`, `StartError`, `InitContainerFailed`, `Disrupted` or `NodeLost`, or a deleted
   Pod.
3. **The end of the launcher's log**, evaluated with the rules below. The operator applies them if it [can read
   logs](../troubleshooting.md#the-log-of-a-launcher-that-is-gone); `kubectl mpi why` applies them with your own permission.
4. **The exit code.** If `mpirun` of Open MPI 4 cannot start the program, it exits with a code from 130 to 135. These codes are therefore
   not reported as signals.

The message of the condition `Failed` starts in the same format as with Kubeflow's operator, followed by `Cause:` and the same verdict.
For `DeadlineExceeded`, it names the cause of the wait. `status.lastFailure.cause` contains the cause of the last failed attempt.
[How failed jobs read](../failed-jobs.md) shows more than 60 failed jobs.

| rule | when | verdict | advice |
|---|---|---|---|
"""


def _rule_text(text: str) -> str:
    """Return the template of a rule with its groups as placeholders, such as FILE."""
    return re.sub(r"\{(\w+)\}", lambda match: match[1].upper(), text)


def _ends() -> str:
    rows = (
        f"| `{rule.name}` | {rule.when} | {_rule_text(rule.facts)} | {_rule_text(rule.advice) or 'depends on the signal'} |\n"
        for rule in RULES
    )
    return _ENDS + "".join(rows)


def causes_page() -> str:
    """Return the text of the page."""
    rows = (
        f"| `{reason}` | {cause.when} | {cause.advice} | {_grace(cause)} | `{'Degraded' if reason in DEGRADING else 'Stalled'}` |\n"
        for reason, cause in CAUSES.items()
    )
    return _HEAD + "".join(rows) + _FOOT + _ends()


def _grace(cause: Cause) -> str:
    return f"{cause.grace_seconds / 60:.0f} min" if cause.grace_seconds else "none"
