"""The rows of the fault matrix, in the order in which they are run: what nothing disturbs first."""

from faults.absence_rows import ABSENCES
from faults.admission_rows import ADMISSION
from faults.edit_rows import EDITS
from faults.flap_rows import FLAPPING
from faults.lease_rows import LEASE_ROWS
from faults.object_rows import OBJECTS
from faults.process_rows import PROCESSES
from faults.rows import ENUMERATED, Row
from faults.server_rows import SERVERS
from faults.watch_rows import WATCHES

ROWS: tuple[Row, ...] = (*ENUMERATED, *WATCHES, *LEASE_ROWS, *PROCESSES, *OBJECTS, *ABSENCES, *ADMISSION, *EDITS, *FLAPPING, *SERVERS)
