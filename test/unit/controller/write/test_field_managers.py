"""Names under which operators write."""

from mpiop.controller.write.field_managers import field_manager


def test_operators_with_different_leases_write_under_different_names() -> None:
    leases = ["mpi-operator", "a" * 253, f"{'a' * 252}b"]
    names = {field_manager("n" * 63, lease) for lease in leases}
    assert len(names) == len(leases)
    assert max(map(len, names)) == 128
