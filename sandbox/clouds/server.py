"""One process that serves one simulated cloud to the engine."""

from __future__ import annotations

import signal
import threading
from concurrent import futures

import grpc
from pulumi.runtime.proto import provider_pb2_grpc

from sandbox.clouds.faults import Faults
from sandbox.clouds.provider import Provider
from sandbox.clouds.tables import Cloud

MESSAGE_BYTES = 400 << 20
"""The engine's own limit of one message."""

TICK_SECONDS = 0.5
"""How often the cloud looks whether time has brought something."""


def serve(cloud: Cloud, faults: Faults) -> None:
    """Serves on a free loopback port until SIGTERM or SIGINT; the first line of output is `<name>:<port>`."""
    server = grpc.server(
        futures.ThreadPoolExecutor(16),
        options=[("grpc.max_receive_message_length", MESSAGE_BYTES), ("grpc.max_send_message_length", MESSAGE_BYTES)],
    )
    provider_pb2_grpc.add_ResourceProviderServicer_to_server(Provider(cloud, faults), server)
    port = server.add_insecure_port("127.0.0.1:0")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    server.start()
    print(f"{cloud.name}:{port}", flush=True)
    while not stop.wait(TICK_SECONDS):
        cloud.tick()
    server.stop(grace=1).wait()
