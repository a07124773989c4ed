"""The embedded cluster: a Kubernetes of one or two nodes on this machine, from package registries alone.

How it holds together: `supervisor` is process 1 of namespaces of its own (process ids, mounts, network, host name), and every
component and container lives below it. When it ends, for whatever reason, the kernel ends all of them and takes the mounts and
the network along; what is left for `down` is the control groups and one folder. The commands talk to it over a socket.
"""
