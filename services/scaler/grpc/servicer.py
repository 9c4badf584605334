"""The five calls of KEDA's external scaler: resolve the trigger, and encode the answers. Every call has a deadline."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, Final, TypeVar

import grpc
import structlog

from lagscale.errors import DataUnavailable, LagscaleError
from services.scaler import metrics
from services.scaler.answers.answer import AnswerService, CallRateLimiter
from services.scaler.grpc.proto import externalscaler_pb2 as pb
from services.scaler.grpc.proto import externalscaler_pb2_grpc as pb_grpc
from services.scaler.grpc.status_codes import find_code, render_status_text
from services.scaler.grpc.streams import Streams
from services.scaler.grpc.tls import CallerIdentifier
from services.scaler.triggers.directory import ResolvedTrigger
from services.scaler.triggers.metadata import TriggerReader
from services.scaler.triggers.registrations import RegistrationsCache

log = structlog.get_logger(__name__)

_MAX_INT64: Final = 2**63 - 1
Response = TypeVar("Response")
Context = Any  # grpc has no types


class Servicer(pb_grpc.ExternalScalerServicer):  # type: ignore[misc]
    """Answers KEDA's calls."""

    def __init__(
        self,
        reader: TriggerReader,
        registrations: RegistrationsCache,
        answers: AnswerService,
        streams: Streams,
        call_seconds: float,
        *,
        call_limiter: CallRateLimiter,
        identify_caller: CallerIdentifier,
    ) -> None:
        self._reader, self._registrations, self._answers, self._streams = reader, registrations, answers, streams
        self._call_seconds, self._call_limiter, self._identify_caller = call_seconds, call_limiter, identify_caller
        #: Event loop time of the latest call.
        self.called_at = 0.0

    async def GetMetricSpec(self, request: Any, context: Context) -> Any:
        """One metric and its target for each monitor, without a query."""

        async def respond(resolved: ResolvedTrigger, _deadline: float) -> Any:
            return build_spec(resolved)

        return await self._bounded("GetMetricSpec", request, context, respond)

    async def GetMetrics(self, request: Any, context: Context) -> Any:
        """The value of one metric, under the requested name."""

        async def respond(resolved: ResolvedTrigger, deadline: float) -> Any:
            monitor = resolved.find_metric(request.metricName)
            answer = (await self._answers.get_answer(monitor, deadline, begins_poll=True)).answer
            return pb.GetMetricsResponse(metricValues=[_build_value(request.metricName, answer.value)])

        return await self._bounded("GetMetrics", request.scaledObjectRef, context, respond)

    async def IsActive(self, request: Any, context: Context) -> Any:
        """Whether any of the monitors is active."""

        async def respond(resolved: ResolvedTrigger, deadline: float) -> Any:
            return pb.IsActiveResponse(result=await is_active(self._answers, resolved, deadline))

        return await self._bounded("IsActive", request, context, respond)

    async def StreamIsActive(self, request: Any, context: Context) -> AsyncIterator[Any]:
        """The activity at once and on every change; `true` is repeated while active."""

        async def read_activity(resolved: ResolvedTrigger, deadline: float) -> bool | None:
            return await is_active(self._answers, resolved, deadline, counted=False)

        async for active in self._streams.stream_activity(
            self._bind_resolver(request, context), read_activity, context, self._call_limiter.admit_stream
        ):
            yield pb.IsActiveResponse(result=active)

    async def StreamMetricSpec(self, request: Any, context: Context) -> AsyncIterator[Any]:
        """The metrics and their targets at once, and again on every change."""
        async for spec in self._streams.stream_specs(self._bind_resolver(request, context), build_spec, context):
            yield spec

    def _bind_resolver(self, ref: Any, context: Context) -> Callable[[float], Coroutine[Any, Any, ResolvedTrigger]]:
        """A function that resolves a stream's trigger, which streams call repeatedly because registrations change."""
        metadata = dict(ref.scalerMetadata)
        caller = self._identify_caller(context), ref.namespace, ref.name

        async def resolve(deadline: float) -> ResolvedTrigger:
            trigger = self._reader.read(metadata)
            return (await self._registrations.wait_for_directory(deadline)).resolve(trigger, *caller)

        return resolve

    async def _bounded(
        self, method: str, ref: Any, context: Context, respond: Callable[[ResolvedTrigger, float], Awaitable[Response]]
    ) -> Response:
        started = time.perf_counter()
        self.called_at = asyncio.get_running_loop().time()
        deadline = self.called_at + self._call_seconds
        code = grpc.StatusCode.OK
        failure: Exception
        try:
            trigger = self._reader.read(ref.scalerMetadata)
            directory = self._registrations.directory or await self._registrations.wait_for_directory(deadline)
            resolved = directory.resolve(trigger, self._identify_caller(context), ref.namespace, ref.name)
            return await respond(resolved, deadline)
        except LagscaleError as error:
            code, failure = find_code(error), error
        except asyncio.CancelledError:
            code = grpc.StatusCode.CANCELLED
            raise
        except Exception as error:
            log.exception("unhandled_exception", method=method)
            code, failure = find_code(error), error
        finally:
            metrics.CALLS.labels(method, code.name).inc()
            metrics.CALL_SECONDS.labels(method).observe(time.perf_counter() - started)
        log.debug("call_rejected", method=method, namespace=ref.namespace, code=code.name)
        await context.abort(code, render_status_text(failure))
        raise AssertionError("abort raises")


async def is_active(
    answers: AnswerService, resolved: ResolvedTrigger, deadline: float, *, counted: bool = True
) -> bool:
    """Whether any monitor is active, by last-known answers, too.

    Raises:
        LagscaleError: none is active, and one of them is unknown or missing: the first one's error.
    """
    monitors = resolved.monitors
    if len(monitors) == len(resolved.entries) == 1:
        return (await answers.get_answer(monitors[0], deadline, counted=counted)).answer.active
    pending = (answers.get_answer(monitor, deadline, counted=counted) for monitor in monitors)
    outcomes = await asyncio.gather(*pending, return_exceptions=True)
    failure: BaseException | None = None
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            failure = failure or outcome
        elif outcome.answer.active:
            return True
    if failure is not None:
        raise failure
    list(resolved.iter_monitors())  # A missing monitor is an error, too.
    return False


def build_spec(resolved: ResolvedTrigger) -> Any:
    """One metric per monitor, with its target in both fields.

    Raises:
        LagscaleError: the error of the first monitor that cannot be resolved.
    """
    targets = [(monitor.name, monitor.policy.target_lag) for monitor in resolved.iter_monitors()]
    specs = [pb.MetricSpec(metricName=name, targetSize=_round_up(lag), targetSizeFloat=lag) for name, lag in targets]
    return pb.GetMetricSpecResponse(metricSpecs=specs)


def _build_value(name: str, value: float) -> Any:
    """A value in both fields: KEDA reads the float only if it is above 0, else the integer."""
    if not math.isfinite(value):
        raise DataUnavailable("Metric value is not finite; check the monitor's samples.")
    if value <= 0:
        return pb.MetricValue(metricName=name, metricValue=0, metricValueFloat=0.0)
    return pb.MetricValue(metricName=name, metricValue=_round_up(value), metricValueFloat=value)


def _round_up(value: float) -> int:
    return min(math.ceil(value), _MAX_INT64)
