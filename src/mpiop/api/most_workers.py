"""How many workers a job can have: their host names must fit into one ConfigMap, and into the memory of the operator that writes it."""

from typing import Final

from mpiop.api.names import worker_prefix

CONFIG_MAP_BYTES: Final = 1 << 20
"""The API server accepts no more data in a ConfigMap."""
_MOST_DIGITS: Final = 10


def most_workers(name: str, namespace: str) -> int:
    """Return an upper bound of the workers of the job `name`.

    Its ConfigMap lists each worker twice: as `<host>` and something about its slots in the hostfile, as `echo <host>` in
    discover_hosts.sh. A cluster domain makes the hosts longer; then the API server may refuse fewer workers.
    """
    common = 2 * len(f"{worker_prefix(name)}.{name}.{namespace}.svc\n".encode(errors="surrogatepass")) + len("echo ")
    workers, left = 0, CONFIG_MAP_BYTES
    for digits in range(1, _MOST_DIGITS + 1):
        per_worker = common + 2 * digits
        numbers = 10**digits - workers  # those whose index has so many digits
        if numbers * per_worker > left:
            return workers + left // per_worker
        workers, left = workers + numbers, left - numbers * per_worker
    return workers
