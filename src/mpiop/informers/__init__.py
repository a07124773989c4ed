"""Reflectors, stores and shared informers, after client-go's; they are generic over kinds."""

from mpiop.informers.factory import InformerFactory
from mpiop.informers.joined import JoinedInformer, JoinedStore
from mpiop.informers.listener import Handler, Registration
from mpiop.informers.reflector import ReflectorSettings
from mpiop.informers.shared_informer import InformerSettings, SharedInformer
from mpiop.informers.source import InformerMetrics, ListerWatcher, NoInformerMetrics
from mpiop.informers.store import Indexer, Notification, Store

__all__ = [
    "Handler",
    "Indexer",
    "InformerFactory",
    "InformerMetrics",
    "InformerSettings",
    "JoinedInformer",
    "JoinedStore",
    "ListerWatcher",
    "NoInformerMetrics",
    "Notification",
    "ReflectorSettings",
    "Registration",
    "SharedInformer",
    "Store",
]
