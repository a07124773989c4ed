"""The page docs/reference/causes.md: each reason of Stalled and Degraded, from the operator's own table."""

from mpiop.controller.status.causes import CAUSES, DEGRADING, Cause

_HEAD = """# Causes

<!-- Made by hack/generate from src/mpiop/controller/status/causes.py; edit that. -->

While one of these causes holds, it is the reason of the condition `Reconciling`, and of `Stalled` after a [grace period](../gitops.md),
or of `Degraded` if the job runs already and other ranks may go on.
`kubectl get mpijobs` shows the reason as `STATE`; the message of the condition names the object and says what to do.
When the cause is gone, `Stalled` and `Degraded` turn False, and `Reconciling` has another reason or is removed.

```shell
kubectl get mpijobs
kubectl get mpijob pi -o jsonpath='{range .status.conditions[?(@.status=="True")]}{.type}: {.reason}: {.message}{"\\n"}{end}'
```

| reason | when | what to do | grace period | condition while the job runs |
|---|---|---|---|---|
"""
_FOOT = """
## As users see it

Jobs that were broken on purpose (`test/e2e/test_causes.py`), on Kubernetes 1.36:

```
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
| `out-of-memory` | … ended: exit code 137 (SIGKILL), OOMKilled. Raise its memory limit, … |

Any other reason is that of the newest event of the Pod that the job waits for, if that event is a warning, with its message.
"""


def causes_page() -> str:
    """Return the text of the page."""
    rows = (
        f"| `{reason}` | {cause.when} | {cause.advice} | {_grace(cause)} | `{'Degraded' if reason in DEGRADING else 'Stalled'}` |\n"
        for reason, cause in CAUSES.items()
    )
    return _HEAD + "".join(rows) + _FOOT


def _grace(cause: Cause) -> str:
    return f"{cause.grace_seconds / 60:.0f} min" if cause.grace_seconds else "none"
