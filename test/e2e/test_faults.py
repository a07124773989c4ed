"""A fixed sample of the fault matrix (`make faults` runs all of it), on a control plane of its own."""

from faults.suite import Choice, run_suite

# A row or two of each kind, at requests that every life has; none that waits for minutes or disturbs the whole server.
SAMPLE = frozenset({
    "F6/succeed/watch pods #1/429-after-1 x3",
    "F7/succeed/watch jobs #2/410",
    "F8/succeed/create jobs/pi-launcher #1/500",
    "F9/succeed/create pods/pi-worker-1 #1/429-after-1",
    "F10/succeed/create services/pi #1/hang",
    "F11/succeed/patch mpijobs.status/pi #1/edited",
    "F12/succeed/create secrets/pi-ssh #1/reset-before",
    "F13/succeed/create pods/pi-worker-0 #1/reset-after",
    "F13/succeed/delete pods/pi-worker-0 #1/close-after",
    "F15/succeed/list pods #1/cut-json",
    "F17/succeed/create configmaps/pi-config #1/401",
    "F19/succeed/event mpijobs #1/cut-reset",
    "F20/succeed/event pods #2/cut-line",
    "F21/succeed/event jobs #1/error-410",
    "F24/suspend/restarted at resumed as of suspended",
    "F25/succeed/event pods #1/gap",
    "F27/suspend/event pods/duplicate",
    "F32/succeed/create jobs/pi-launcher #1/killed-undelivered",
    "F32/succeed/patch mpijobs.status/pi #1/killed-delivered",
    "F33/succeed/create pods/pi-worker-0 #1/term-after",
    "F34/succeed/create pods/pi-worker-0 #1/blocked",
    "F36/succeed/death of informers",
    "F40/succeed/create pods/pi-worker-0 #1/lease-stolen",
    "F41/succeed/two leaders",
    "F42/succeed/create jobs/pi-launcher #1/paused",
    "F45/succeed/leases/cut",
    "F46/succeed/lease deleted at Running",
    "F47/succeed/three replicas",
    "F49/fail/token rotated",
    "F50/succeed/create pods/pi-worker-0 #1/token file missing",
    "F52/fail/proxies in the environment",
    "F57/alone/more workers than a ConfigMap holds hosts",
    "F60/succeed/Secret of nobody",
    "F63/alone/a second operator with another cluster domain",
    "F63/succeed/a webhook that need not answer",
    "F64/succeed/a worker that does not go",
    "F65/succeed/labels of the Job",
    "F68/alone/deleted and created",
})


async def test_a_job_lives_through_a_sample_of_faults() -> None:
    assert await run_suite(Choice(names=SAMPLE), cluster="faults-sample", parallel=6, lease_seconds=6) == 0
