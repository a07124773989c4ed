"""Kubernetes Events: what happened to a job, for `kubectl describe` and `kubectl get events`.

Events are a courtesy. Recording one never waits, never fails and never costs memory without bound; equal ones are counted in one object,
similar ones are combined, chatter about one object is limited, and what the API server does not take after a few attempts is dropped (T5).
"""

from mpiop.events.recorder import EventClient, EventRecorder

__all__ = ["EventClient", "EventRecorder"]
