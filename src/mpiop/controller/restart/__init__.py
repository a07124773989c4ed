"""Restarts of a job whose launcher has lost a worker, or failed.

`attempt` describes the launcher's current attempt, with the `lost_workers` and why they are lost. Everything else only asks it:
`decision` says whether a restart begins, by the `policy`; `plan` says which workers are replaced and when the launcher is resumed;
`controller/status/restarts.py` says what the status reports.

A restart is stored in the status before anything is done about it (docs/adr/0019-restarts.md). What is left to do then follows from the
objects: the pod template of the launcher Job has an earlier count until the Job is resumed.
"""
