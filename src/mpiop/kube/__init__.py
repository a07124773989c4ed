"""Access to the Kubernetes API: wire objects, resources, errors and the client."""
