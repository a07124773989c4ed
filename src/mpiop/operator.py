"""The composition root: the only place that constructs the parts of the operator and puts them together.

Every replica serves probes and follows the API server; only the one that holds the lease syncs. On a planned stop the syncs end first, then
the lease is released, then everything else; when any part dies, the process ends (`cli.process` has its exit codes).
"""

import asyncio
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from operator import attrgetter

import structlog

from mpiop import __version__
from mpiop.api import constants as c
from mpiop.api.capabilities import Capabilities
from mpiop.api.status import state_of
from mpiop.clock import Clock, SystemClock
from mpiop.controller.batches import Batches
from mpiop.controller.controller import Controller
from mpiop.controller.executor import Executor
from mpiop.controller.gang.discovery import GangDiscovery
from mpiop.controller.gang.gang import Gang
from mpiop.controller.memory import JobMemory
from mpiop.controller.objects import BuildOptions
from mpiop.controller.objects.ssh_secret import KeyPair
from mpiop.controller.observe.consistency import Consistency
from mpiop.controller.observe.deleted_launchers import LauncherJobs
from mpiop.controller.observe.deleted_workers import DeletedWorkers
from mpiop.controller.observe.job_reader import Reader
from mpiop.controller.observe.observed import BY_CONTROLLER, Listers, index_by_controller
from mpiop.controller.observe.projections import PROJECTIONS, trimmed, trims
from mpiop.controller.observe.stored_specs import Specs
from mpiop.controller.observer import Observer
from mpiop.controller.problems import Problems
from mpiop.controller.status.refusals import PersistentFailures
from mpiop.controller.sync import Syncer
from mpiop.controller.write.apply import Applier
from mpiop.controller.write.contention import Contention
from mpiop.controller.write.field_managers import field_manager
from mpiop.controller.write.launcher_logs import LauncherLogs
from mpiop.controller.write.publish_capabilities import CapabilitiesPublisher
from mpiop.controller.write.report import Reporter
from mpiop.controller.write.ssh_keys import SLOW_KEY_TYPES, generate_key_pair
from mpiop.controller.write.ssh_secrets import SshSecrets
from mpiop.controller.write.warning_events import WarningEvents
from mpiop.events import EventRecorder
from mpiop.informer_counters import InformerCounters
from mpiop.informers.factory import InformerFactory
from mpiop.informers.joined import JoinedInformer, JoinedStore, wait_for_any
from mpiop.informers.shared_informer import InformerSettings
from mpiop.informers.store import Notification, Store
from mpiop.kube.client import Client
from mpiop.kube.config import load_config
from mpiop.kube.objects import Key
from mpiop.kube.resources import CONFIG_MAPS, JOBS, MPIJOBS, PODS, SERVICES, Resource, Selection
from mpiop.kube.transport import TransportOptions, connect
from mpiop.leaderelection import ElectionConfig, LeaderElector, unique_identity
from mpiop.metrics import Metrics
from mpiop.options import DEFAULT_AGENT_IMAGE, Options
from mpiop.server import Access, Handler, Server, authorized, health, scrape, serving_context
from mpiop.shares import RESERVED
from mpiop.workqueue import NotReady, WorkQueue, retry_limiter

QUEUE_NAME = "MPIJob"
OURS = f"{c.LABEL_OPERATOR_NAME}={c.OPERATOR_NAME}"
RECHECK_SECONDS = 1.0
METRICS_PATH = "/metrics"
# Who may scrape takes two requests, which together are to be answered within Prometheus' 10 s.
REVIEW_DEADLINE_SECONDS = 4.0
_CHILDREN = (PODS, SERVICES, CONFIG_MAPS, JOBS)

log = structlog.get_logger(__name__)


async def run(options: Options) -> None:
    """Run the operator until cancelled.

    Raises:
        ConfigError: No API server is known, or not how to prove who we are.
        ExceptionGroup: The lease was lost, a port is taken, or a part of the operator died.
    """
    metrics, clock = Metrics(version=__version__), SystemClock()
    transport = TransportOptions(
        qps=options.kube_api_qps,
        burst=options.kube_api_burst,
        observer=metrics.observe_request,
    )
    client = await connect(load_config(options.master, options.kubeconfig), transport, clock)
    log.info("starting", version=__version__, namespaces=", ".join(options.namespaces) or "all")
    try:
        await Operator(options, client, metrics, clock).run()
    finally:
        await client.close()


class Operator:
    """One replica of the operator."""

    def __init__(self, options: Options, client: Client, metrics: Metrics, clock: Clock) -> None:
        """Construct every part; nothing runs yet.

        Raises:
            ValueError: The options contradict each other.
        """
        self._host = host = socket.gethostname()
        self._client, self._clock = client, clock
        self._options = options
        self._metrics = metrics
        self._counters = InformerCounters(metrics)
        self._factory = InformerFactory(client, InformerSettings(metrics=self._counters))
        election = ElectionConfig.from_options(options)
        leases = client.separate(election.request_deadline_seconds)
        self._elector = elector = LeaderElector(election, leases, clock, unique_identity(host))
        metrics.is_leader.set_function(lambda: float(elector.is_leader))
        metrics.asyncio_tasks.set_function(lambda: float(len(asyncio.all_tasks())))
        count = metrics.events.labels
        event_client = client.fenced(elector.assert_not_lost)
        self._recorder = EventRecorder(event_client, clock, count=lambda outcome: count(outcome).inc())
        namespace_of: Callable[[Key], str] = attrgetter("namespace")
        self._queue = WorkQueue[Key](
            retry_limiter(options.queue_rate_limit, options.queue_burst, namespace_of),
            metrics.queue(QUEUE_NAME),
            namespace_of=namespace_of,
            limit=options.threadiness,
        )
        metrics.watch_queue(QUEUE_NAME, self._queue.unfinished_seconds, self._queue.longest_running_seconds)
        self._gang = Gang(options.gang_scheduling)
        self._stores: dict[Resource, Store | JoinedStore] = {}
        self._trims = trims(Specs())
        self._controller = self._build_controller(client, clock)
        self._discovery = GangDiscovery(client, self._gang, self._follow_gang, self._counters.failure)

    async def run(self) -> None:
        """Serve, follow and, with the lease, sync, until cancelled."""
        async with asyncio.TaskGroup() as group:
            for server in self._servers():
                group.create_task(server.run(), name="server")
            group.create_task(self._factory.run(), name="informers")
            group.create_task(self._recorder.run(), name="events")
            group.create_task(self._discovery.run(), name="gang scheduling")
            # The body of the group is what a planned stop cancels first; its tasks end after it.
            await self._elector.lead(self._lead)

    async def _lead(self) -> None:
        await self._discovery.wait_for_answer()
        # Not those of gang scheduling, which may be forbidden: jobs that need them report it.
        await wait_for_any(self._informers.values(), self._options.namespaces or ("",))
        async with asyncio.TaskGroup() as group:
            publishing = [group.create_task(publisher.run(), name="capabilities") for publisher in self._capabilities]
            try:
                await self._controller.run(self._options.threadiness + RESERVED)
            finally:
                for task in publishing:
                    task.cancel()

    async def _sync(self, key: Key) -> float | None:
        if not (self._gang.is_known(key.namespace) and all(each.has_synced(key.namespace) for each in self._informers.values())):
            raise NotReady(RECHECK_SECONDS)
        return await self._syncer.sync(key)

    def _build_controller(self, client: Client, clock: Clock) -> Controller:
        informers = self._informers = {resource: self._informer(resource, OURS) for resource in _CHILDREN}
        informers[MPIJOBS] = self._informer(MPIJOBS, "")
        stores = self._stores
        stores.update({resource: informer.store for resource, informer in informers.items()})
        us = field_manager(self._options.lock_namespace, self._options.lease_name)
        memory = JobMemory()
        contention = Contention(clock, us, memory, self._metrics.count_damped_write)
        writer = client.fenced(self._elector.assert_leading, us)
        applier = Applier(writer, Consistency(stores, clock, memory), contention, self._metrics.count_failed_write)
        launchers, deleted = LauncherJobs(stores[JOBS], stores[MPIJOBS]), DeletedWorkers()
        listers = Listers(stores[SERVICES], stores[CONFIG_MAPS], launchers, stores[PODS], deleted, self._gang.listers)
        batches, secrets = Batches(memory, applier.consistency), SshSecrets(applier, self._new_key_pair, clock, memory.table())
        self._capabilities = self._build_capabilities(writer)
        self._syncer = Syncer(
            mpijobs=stores[MPIJOBS],
            memory=memory,
            observer=Observer(listers, applier, batches, Reader(memory)),
            executor=Executor(applier, secrets, self._build_options(), self._gang),
            problems=Problems(contention, WarningEvents(client, clock, memory), clock, PersistentFailures(memory)),
            logs=LauncherLogs(client, clock),
            reporter=Reporter(applier, self._recorder, self._metrics, clock, memory.table()),
            lost_worker_timeout_seconds=self._options.lost_worker_timeout_seconds,
        )
        self._metrics.watch_jobs(self._job_states)
        controller = Controller(self._sync, self._queue, self._job_keys, self._metrics, batches)
        informers[JOBS].follow(launchers.job_changed)
        informers[PODS].follow(deleted.pod_changed)
        informers[MPIJOBS].add_handler(launchers.mpijob_changed)
        for informer in informers.values():
            informer.add_handler(controller.handle)
        informers[MPIJOBS].add_handler(self._forget_events)
        return controller

    def _build_options(self) -> BuildOptions:
        options = self._options
        agent_image = DEFAULT_AGENT_IMAGE if options.agent_image is None else options.agent_image
        return BuildOptions(options.cluster_domain, options.gang_scheduling, options.ssh, agent_image, options.agent_delivery)

    def _build_capabilities(self, writer: Client) -> Sequence[CapabilitiesPublisher]:
        """Publish where the rights for jobs are enough: in the namespaces that are served, else in our own."""
        options = self._options
        offered = Capabilities.offered(__version__, default_ssh=options.ssh, agent_image=options.agent_image)
        where = options.namespaces or (options.lock_namespace,)
        return [CapabilitiesPublisher(writer, namespace, offered) for namespace in where]

    def _job_keys(self) -> Collection[Key]:
        store = self._stores[MPIJOBS]
        return {*store.keys(), *store.unreadable}

    def _job_states(self) -> Mapping[str, int]:
        """Return how many jobs are in each state, by the summary of their status; only the leader counts them."""
        if not self._elector.is_leader:
            return {}
        return Counter(state_of(job.get("status")) or "New" for job in self._stores[MPIJOBS].values())

    def _forget_events(self, notification: Notification) -> None:
        if notification.old is not None and notification.new is None:
            self._recorder.forget(notification.old)

    def _follow_gang(self, resource: Resource) -> JoinedInformer:
        informer = self._informer(resource, OURS if resource.namespaced else "")
        self._stores[resource] = informer.store
        informer.add_handler(self._controller.handle)
        return informer

    def _informer(self, resource: Resource, label_selector: str) -> JoinedInformer:
        projection, trim = PROJECTIONS.get(resource), self._trims.get(resource, trimmed)
        namespaces = self._options.namespaces if resource.namespaced else ()
        selections = [Selection(resource, each, label_selector, projection=projection, trim=trim) for each in namespaces or ("",)]
        indexers = {BY_CONTROLLER: index_by_controller}
        informer = JoinedInformer([self._factory.informer(selection, indexers=indexers) for selection in selections])
        self._metrics.watch_informer(
            resource.plural,
            lambda: _age_seconds(informer.last_activity),
            lambda: float(informer.backlog),
            lambda: float(len(informer.store.unreadable)),
        )
        return informer

    def _servers(self) -> list[Server]:
        """Return one server a port; port 0 is off, and probes and metrics may share one unless metrics are secure.

        Raises:
            ServerError: The certificate of secure metrics cannot be used.
        """
        probes = {
            "/healthz": health({"leader election": self._elector.check}),
            "/readyz": health({"informers": self._informer_problems, "gang scheduling": self._gang_problems}),
        }
        routes: dict[int, dict[str, Handler]] = {self._options.health_port: probes}
        secure: dict[int, ssl.SSLContext] = {}
        metrics, port = scrape(self._metrics), self._options.monitoring_port
        if self._options.metrics_secure:
            # Standing by, too, a replica is scraped: no fencing by the leader.
            metrics = authorized(Access(self._client.separate(REVIEW_DEADLINE_SECONDS), METRICS_PATH), metrics)
            secure[port] = serving_context(self._options.metrics_cert_dir, self._host, self._clock)
        routes.setdefault(port, {})[METRICS_PATH] = metrics
        return [Server("", port, handlers, secure.get(port)) for port, handlers in routes.items() if port]

    def _informer_problems(self) -> Sequence[str]:
        return [text for selection, text in self._unfollowed().items() if self._prevents_readiness(selection.namespace)]

    def _gang_problems(self) -> Sequence[str]:
        return [text for namespace, text in self._discovery.problems().items() if self._prevents_readiness(namespace)]

    def _prevents_readiness(self, namespace: str) -> bool:
        """Return whether a problem in `namespace` counts: one in which we may have no rights does not, as long as another one is served."""
        namespaces = set(self._options.namespaces)
        served = namespaces - {selection.namespace for selection in self._unfollowed()} - self._discovery.problems().keys()
        return namespace not in namespaces or not served

    def _unfollowed(self) -> Mapping[Selection, str]:
        return {selection: f"{selection} not synced" for selection in self._factory.unsynced()} | self._counters.out_of_reach()

    async def _new_key_pair(self) -> KeyPair:
        key_type = self._options.ssh_key_type
        return await asyncio.to_thread(generate_key_pair, key_type) if key_type in SLOW_KEY_TYPES else generate_key_pair(key_type)


def _age_seconds(loop_time: float | None) -> float:
    """Return how long ago `loop_time` was; infinitely long when it never was."""
    return float("inf") if loop_time is None else asyncio.get_running_loop().time() - loop_time
