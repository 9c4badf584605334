"""Request and response bodies of bindings."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from pydantic import Field

from lagscale.store.registry.session import Row
from services.api.schemas import ApiSchema, Line


class BindingIn(ApiSchema):
    """A KEDA instance and Kubernetes namespace whose ScaledObjects belong to the tenant."""

    instance: Annotated[Line, Field(min_length=1)] = Field(
        default="default", description="KEDA instance: the name in its client certificate, or `default` without one."
    )
    namespace: Annotated[Line, Field(min_length=1)] = Field(
        examples=["shop-production"], description="Kubernetes namespace, or `*` for all namespaces of the instance."
    )


class BindingOut(BindingIn):
    """A binding of the tenant."""

    created_at: datetime


def serialize_binding(row: Row) -> BindingOut:
    """A binding's row as a body."""
    return BindingOut.model_validate({name: row[name] for name in BindingOut.model_fields})
