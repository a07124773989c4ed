"""Checks that gangs of the new scheduler are built, reported and shown; run it after `new_members.scheduler`."""

from example_children import build_worker_pod, observed
from example_jobs import PI
from fakes.client_api import FakeApi
from generators.flags import flags_page
from mpiop.controller.causes import GANG_API_MISSING
from mpiop.controller.gang.gang import Gang, candidates
from mpiop.controller.objects import BuildOptions
from mpiop.controller.plan.desired import desired_state
from mpiop.controller.plan.diff import Create, Step
from mpiop.controller.restart.attempt import launcher_attempt
from mpiop.controller.status.refusals import FailedWrite, refusal
from mpiop.kube.errors import StatusError
from mpiop.kubectl.doctor import schedulers
from new_members.scheduler import ACME, TROOPS, build_troop
from virtual_time import EPOCH


def main() -> None:
    """Fail at the first place that does not know the scheduler."""
    pod = build_worker_pod(PI, 0, BuildOptions(gang_scheduler=ACME.name))
    assert pod["metadata"]["labels"][ACME.pod_label] == PI.name
    assert pod["spec"]["schedulerName"] == ACME.name

    desired = desired_state(launcher_attempt(PI, observed()), EPOCH)
    assert desired is not None
    [stage] = Gang(ACME.name, candidates(ACME.name)[0]).stages(PI, desired, observed())
    assert stage.step is Step.GANG
    [create] = stage.actions
    assert isinstance(create, Create)
    assert (create.resource, create.build()) == (TROOPS, build_troop(PI, {}))

    missing = Gang(ACME.name).missing(PI.namespace)
    assert missing is not None
    assert str(missing) == (
        "gang scheduling by 'acme' is on, but the API server does not serve troops of acme.example.com: install Acme, or start the "
        "operator without --gang-scheduling"
    )
    not_found = StatusError("create troops", {"code": 404, "reason": "NotFound", "message": "no such kind"})
    problem = refusal(FailedWrite(TROOPS.kind, not_found))
    assert problem is not None
    assert problem.reason == GANG_API_MISSING

    assert "acme" in flags_page()

    api = FakeApi()
    api.answers["/apis"] = {"groups": [{"name": TROOPS.group}]}
    assert [finding.text for finding in schedulers(api)] == ["PodGroups of gang schedulers: Acme"]


if __name__ == "__main__":
    main()
