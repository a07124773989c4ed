"""The rows of the fault matrix, in the order in which they are run: what nothing disturbs first."""

from faults.lease_rows import LEASE_ROWS
from faults.process_rows import PROCESSES
from faults.rows import ENUMERATED, Row
from faults.server_rows import SERVERS
from faults.watch_rows import WATCHES

ROWS: tuple[Row, ...] = (*ENUMERATED, *WATCHES, *LEASE_ROWS, *PROCESSES, *SERVERS)
