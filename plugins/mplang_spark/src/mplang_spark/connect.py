"""Client of Spark Connect: one connection, one session, results as Arrow. Imports gRPC."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Generator, Mapping, Sequence
from typing import Any

import grpc
import pyarrow as pa  # type: ignore[import-untyped]
from pyspark.sql.connect.proto import (
    base_pb2 as messages,
    base_pb2_grpc as services,
    relations_pb2 as relations,
    types_pb2 as types,
)

from mplang_spark.address import Address

CLIENT = "mplang"
MAX_MESSAGE = 128 << 20  # bytes; Spark sends batches of 4 MiB
SHORT = 60.0  # seconds for what reads no rows

_OPTIONS = [
    ("grpc.max_receive_message_length", MAX_MESSAGE),
    ("grpc.enable_retries", 0),
    ("grpc.enable_http_proxy", 0),  # no variable of the environment says where it connects
    ("grpc.service_config_disable_resolution", 1),
]


class SparkConnection:
    """Session at a Spark Connect server.

    It is one connection. It sends plans, and never code; it is not for several threads.

    Args:
        address: of the server.
    """

    def __init__(self, address: Address) -> None:
        self._channel = _channel(address)
        stub: Any = services.SparkConnectServiceStub
        self._stub = stub(self._channel)
        self._metadata = address.metadata()
        self._same: dict[str, Any] = {
            "session_id": str(uuid.uuid4()),
            "user_context": messages.UserContext(user_id=address.user, user_name=address.user),
            "client_type": CLIENT,
        }

    def wait(self, seconds: float) -> None:
        """Wait until the server takes calls.

        Raises:
            grpc.FutureTimeoutError: it does not.
        """
        grpc.channel_ready_future(self._channel).result(seconds)

    def version(self) -> str:
        """Return the version of the server."""
        asked = messages.AnalyzePlanRequest.SparkVersion()
        made = messages.AnalyzePlanRequest(spark_version=asked, **self._same)
        return str(self._call(self._stub.AnalyzePlan, made).spark_version.version)

    def configure(self, settings: Mapping[str, str]) -> dict[str, str | None]:
        """Set options of the session, and return what they are then."""
        pairs = [messages.KeyValue(key=key, value=value) for key, value in settings.items()]
        written = messages.ConfigRequest.Set(pairs=pairs)
        self._config(messages.ConfigRequest.Operation(set=written))
        read = messages.ConfigRequest.GetOption(keys=list(settings))
        result = self._config(messages.ConfigRequest.Operation(get_option=read))
        return {each.key: each.value if each.HasField("value") else None for each in result.pairs}

    def columns(self, parts: Sequence[str]) -> dict[str, str]:
        """Return the columns of a table, and Spark's names of their types."""
        named = relations.Read.NamedTable(unparsed_identifier=".".join(map(quoted, parts)))
        read = relations.Relation(read=relations.Read(named_table=named))
        asked = messages.AnalyzePlanRequest.Schema(plan=messages.Plan(root=read))
        made = messages.AnalyzePlanRequest(schema=asked, **self._same)
        schema = self._call(self._stub.AnalyzePlan, made).schema.schema
        return {each.name: type_name(each.data_type) for each in schema.struct.fields}

    def query(self, sql: str, seconds: float) -> Generator[pa.RecordBatch, None, None]:
        """Yield the result of a query, in batches; it ends at the server where this ends.

        Args:
            sql: one SELECT.
            seconds: time after which it is ended.

        Raises:
            grpc.RpcError: it fails, or takes longer.
        """
        operation = str(uuid.uuid4())
        plan = messages.Plan(root=relations.Relation(sql=relations.SQL(query=sql)))
        request = messages.ExecutePlanRequest(plan=plan, operation_id=operation, **self._same)
        stream = self._stub.ExecutePlan(request, timeout=seconds, metadata=self._metadata)
        try:
            for response in stream:
                if response.WhichOneof("response_type") == "arrow_batch":
                    data = pa.py_buffer(response.arrow_batch.data)
                    yield from pa.ipc.open_stream(data)
        except BaseException:
            self._interrupt(operation)
            raise
        finally:
            stream.cancel()

    def _interrupt(self, operation: str) -> None:
        kind = messages.InterruptRequest.INTERRUPT_TYPE_OPERATION_ID
        made = messages.InterruptRequest(interrupt_type=kind, operation_id=operation, **self._same)
        with contextlib.suppress(grpc.RpcError):  # it has ended, or the server has
            self._call(self._stub.Interrupt, made)

    def close(self) -> None:
        """End the session, with all that it runs, and the connection."""
        with contextlib.suppress(grpc.RpcError), contextlib.closing(self._channel):
            self._call(self._stub.ReleaseSession, messages.ReleaseSessionRequest(**self._same))

    def __enter__(self) -> SparkConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _config(self, operation: messages.ConfigRequest.Operation) -> messages.ConfigResponse:
        request = messages.ConfigRequest(operation=operation, **self._same)
        result: messages.ConfigResponse = self._call(self._stub.Config, request)
        return result

    def _call(self, method: Any, request: Any) -> Any:
        return method(request, timeout=SHORT, metadata=self._metadata)


def quoted(name: str) -> str:
    """Return a name as Spark's SQL quotes it."""
    return "`" + name.replace("`", "``") + "`"


def type_name(kind: types.DataType) -> str:
    """Return Spark's name of a type, with its collation if texts are not compared by bytes."""
    which = kind.WhichOneof("kind")
    if which == "decimal":
        return f"decimal({kind.decimal.precision},{kind.decimal.scale})"
    if which == "string" and kind.string.collation not in ("", "UTF8_BINARY"):
        return f"string collate {kind.string.collation}"
    return str(which)


def _channel(address: Address) -> grpc.Channel:
    target = f"{address.host}:{address.port}"
    if not address.tls:
        return grpc.insecure_channel(target, _OPTIONS)
    roots = None
    if address.ca_file:
        with open(address.ca_file, "rb") as file:
            roots = file.read()
    return grpc.secure_channel(target, grpc.ssl_channel_credentials(roots), _OPTIONS)
