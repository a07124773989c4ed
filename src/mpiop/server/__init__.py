"""HTTP for probes and scrapes: health with reasons, metrics, in the open or over TLS to callers whom the API server lets read them."""

from mpiop.server.access import Access, authorized
from mpiop.server.certificate import serving_context
from mpiop.server.serving import Check, Handler, Server, ServerError, health, scrape

__all__ = ["Access", "Check", "Handler", "Server", "ServerError", "authorized", "health", "scrape", "serving_context"]
