"""What is counted of an operator under load."""

from bench.loads import own_requests


def counted(requests: dict[str, float]) -> dict[str, float]:
    """Return the samples that the operator serves, by their labels."""
    return {f"mpiop_api_requests_total{{{labels}}}": count for labels, count in requests.items()}


def test_requests_are_counted_between_two_scrapes_but_those_about_the_lease() -> None:
    before = counted({'code="201",resource="pods",verb="create"': 2})
    after = counted({
        'code="201",resource="pods",verb="create"': 10,
        'code="409",resource="mpijobs",verb="patch"': 1,
        'code="200",resource="leases",verb="update"': 50,
    })

    assert own_requests(before, after) == {"create pods": 8, "patch mpijobs: 409": 1}
