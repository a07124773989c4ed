"""Restarts of a job whose launcher has lost a worker, or failed.

`attempt` describes the launcher's current attempt, with the `lost_workers` and why they are lost. Everything else only asks it:
`decision` decides whether a restart begins, with the `policy`; `plan` decides which workers are replaced and when the launcher is
resumed; `controller/status/restarts.py` reports it in the status.

A restart is stored in the status before anything is done about it (docs/adr/0019-restarts.md). What is left to do then follows from the
objects: the pod template of the launcher Job has an earlier count until the Job is resumed.
"""
