"""The five calls of KEDA: reads the trigger, finds the monitors, and encodes the answers. Every call is bounded."""

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
from services.scaler.answers.answer import Answers
from services.scaler.grpc.callers import Callers
from services.scaler.grpc.proto import externalscaler_pb2 as pb
from services.scaler.grpc.proto import externalscaler_pb2_grpc as pb_grpc
from services.scaler.grpc.status_codes import code_of, text_of
from services.scaler.grpc.streams import Streams
from services.scaler.triggers.directory import Asked, Directory, Subject
from services.scaler.triggers.metadata import Reader
from services.scaler.triggers.registrations import Known

log = structlog.get_logger(__name__)

_GREATEST_INT64: Final = 2**63 - 1
Response = TypeVar("Response")
Context = Any  # grpc has no types


class Servicer(pb_grpc.ExternalScalerServicer):  # type: ignore[misc]
    """Answers KEDA from memory and from the store."""

    def __init__(
        self,
        reader: Reader,
        known: Known,
        answers: Answers,
        streams: Streams,
        call_seconds: float,
        *,
        callers: Callers,
    ) -> None:
        self._reader = reader
        self._instance_of = callers
        self._known = known
        self._answers = answers
        self._streams = streams
        self._call_seconds = call_seconds
        #: When the newest call came, by the event loop's clock.
        self.called_at = 0.0

    async def GetMetricSpec(self, request: Any, context: Context) -> Any:
        """One metric and its target for each monitor; the store is not asked."""

        async def answer(asked: Asked, _deadline: float) -> Any:
            return spec_of(asked)

        return await self._bounded("GetMetricSpec", request, context, answer)

    async def GetMetrics(self, request: Any, context: Context) -> Any:
        """The value of one metric, under the name that was asked for."""

        async def answer(asked: Asked, deadline: float) -> Any:
            subject = asked.metric(request.metricName)
            told = (await self._answers.tell(subject, deadline, begins_poll=True)).told
            return pb.GetMetricsResponse(metricValues=[_value(request.metricName, told.value)])

        return await self._bounded("GetMetrics", request.scaledObjectRef, context, answer)

    async def IsActive(self, request: Any, context: Context) -> Any:
        """Whether any of the monitors is active."""

        async def answer(asked: Asked, deadline: float) -> Any:
            return pb.IsActiveResponse(result=await is_active(self._answers, asked, deadline))

        return await self._bounded("IsActive", request, context, answer)

    async def StreamIsActive(self, request: Any, context: Context) -> AsyncIterator[Any]:
        """The activity at once, on every change, and `true` again and again while active."""

        async def state(asked: Asked, deadline: float) -> bool | None:
            return await is_active(self._answers, asked, deadline, counted=False)

        async for active in self._streams.activity(self._asking(request, context), state, context, self._answers.opens):
            yield pb.IsActiveResponse(result=active)

    async def StreamMetricSpec(self, request: Any, context: Context) -> AsyncIterator[Any]:
        """The metrics and their targets at once, and again on every change."""
        async for spec in self._streams.specs(self._asking(request, context), spec_of, context):
            yield spec

    def _asking(self, ref: Any, context: Context) -> Callable[[float], Coroutine[Any, Any, Asked]]:
        """Resolves a stream's trigger; streams do so again and again, for registrations change."""
        metadata, instance = dict(ref.scalerMetadata), self._instance_of(context)
        namespace, name = ref.namespace, ref.name

        async def ask(deadline: float) -> Asked:
            trigger = self._reader.read(metadata)
            return (await self._known.present(deadline)).resolve(trigger, instance, namespace, name)

        return ask

    async def _bounded(
        self, method: str, ref: Any, context: Context, answer: Callable[[Asked, float], Awaitable[Response]]
    ) -> Response:
        started = time.perf_counter()
        self.called_at = asyncio.get_running_loop().time()
        deadline = self.called_at + self._call_seconds
        code = grpc.StatusCode.OK
        failure: Exception
        try:
            trigger = self._reader.read(ref.scalerMetadata)
            directory: Directory = self._known.directory or await self._known.present(deadline)
            asked = directory.resolve(trigger, self._instance_of(context), ref.namespace, ref.name)
            return await answer(asked, deadline)
        except LagscaleError as error:
            code, failure = code_of(error), error
        except asyncio.CancelledError:
            code = grpc.StatusCode.CANCELLED
            raise
        except Exception as error:
            log.exception("call_failed", method=method)
            code, failure = code_of(error), error
        finally:
            metrics.CALLS.labels(method, code.name).inc()
            metrics.CALL_SECONDS.labels(method).observe(time.perf_counter() - started)
        log.debug("call_refused", method=method, namespace=ref.namespace, code=code.name)
        await context.abort(code, text_of(failure))
        raise AssertionError("abort raises")


async def is_active(answers: Answers, asked: Asked, deadline: float, *, counted: bool = True) -> bool:
    """Whether any monitor is active, held ones too.

    Raises:
        LagscaleError: none is, and one of them is unknown or missing: the first one's error.
    """
    subjects = [entry for entry in asked.entries if isinstance(entry, Subject)]
    if len(subjects) == len(asked.entries) == 1:
        return (await answers.tell(subjects[0], deadline, counted=counted)).told.active
    telling = (answers.tell(subject, deadline, counted=counted) for subject in subjects)
    found = await asyncio.gather(*telling, return_exceptions=True)
    failure: BaseException | None = None
    for outcome in found:
        if isinstance(outcome, BaseException):
            failure = failure or outcome
        elif outcome.told.active:
            return True
    if failure is not None:
        raise failure
    list(asked.subjects())  # A monitor that is missing is an error as well.
    return False


def spec_of(asked: Asked) -> Any:
    """One metric per monitor, with its target in both fields.

    Raises:
        LagscaleError: the first monitor that is none.
    """
    return pb.GetMetricSpecResponse(
        metricSpecs=[
            pb.MetricSpec(
                metricName=subject.name,
                targetSize=_rounded_up(subject.policy.target_lag),
                targetSizeFloat=subject.policy.target_lag,
            )
            for subject in asked.subjects()
        ]
    )


def _value(name: str, value: float) -> Any:
    """A value in both fields: KEDA reads the float only above 0, else the integer."""
    if not math.isfinite(value):
        raise DataUnavailable("The value is not finite; look at the monitor's samples.")
    if value <= 0:
        return pb.MetricValue(metricName=name, metricValue=0, metricValueFloat=0.0)
    return pb.MetricValue(metricName=name, metricValue=_rounded_up(value), metricValueFloat=value)


def _rounded_up(value: float) -> int:
    return min(math.ceil(value), _GREATEST_INT64)
