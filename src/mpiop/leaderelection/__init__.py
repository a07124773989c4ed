"""Leader election on a Lease that is compatible with client-go's: one replica works, the others stand by, warm.

Theory of operation (`docs/adr` and the invariants L60-L66 give the reasons):

- A Lease names its holder and for how long a record counts. We may take it when it is absent, has no holder, or when its record did not
  change for its own duration *on our clock*. Wall clocks are written for people to read, and never compared.
- The leader renews. Its right to work ends `renew_deadline_seconds` after its last successful renewal was *sent*, which is before any other
  replica's wait can end: those count from a later moment, and for longer.
- A lease is not a lock: each write asks `LeaderElector.assert_leading` first, and must still be safe under two leaders.
- A lost lease ends the process. A planned stop ends the work first and releases the lease last.
"""

from mpiop.leaderelection.config import ElectionConfig, unique_identity
from mpiop.leaderelection.elector import LeaderElector, LeaseLostError
from mpiop.leaderelection.lock import LeaseClient

__all__ = ["ElectionConfig", "LeaderElector", "LeaseClient", "LeaseLostError", "unique_identity"]
