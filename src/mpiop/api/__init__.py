"""The custom resource MPIJob: its types, parsing, defaults and validation; pure."""
