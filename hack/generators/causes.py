"""The page docs/reference/causes.md: each reason of Stalled and Degraded, from the operator's own table."""

from mpiop.controller.status.causes import CAUSES, DEGRADING

_HEAD = """# Causes

Made by `hack/generate` from `src/mpiop/controller/status/causes.py`; edit that.

While one of these causes holds, the condition `Stalled` is True, or `Degraded` if the job runs already and other ranks may go on.
`kubectl get mpijobs` shows the reason as `STATE`; the message of the condition names the object and says what to do.
The condition turns False when the cause is gone.

```shell
kubectl get mpijobs
kubectl get mpijob pi -o jsonpath='{range .status.conditions[?(@.status=="True")]}{.type}: {.reason}: {.message}{"\\n"}{end}'
```

| reason | when | what to do | condition while the job runs |
|---|---|---|---|
"""
_FOOT = """
Any other reason is that of the newest event of the Pod that the job waits for, if that event is a warning, with its message.
"""


def causes_page() -> str:
    """Return the text of the page."""
    rows = (
        f"| `{reason}` | {cause.when} | {cause.advice} | `{'Degraded' if reason in DEGRADING else 'Stalled'}` |\n"
        for reason, cause in CAUSES.items()
    )
    return _HEAD + "".join(rows) + _FOOT
