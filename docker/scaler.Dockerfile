# The scaler: answers KEDA over gRPC.
# Build from the repository's root: docker build -f docker/scaler.Dockerfile -t lagscale/scaler:0.1.0 .
FROM python:3.11-slim-bookworm AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /src
# What the lock names, by hash; nothing else is downloaded into the image.
COPY requirements/scaler.lock requirements/
RUN python -m venv /opt/lagscale \
 && /opt/lagscale/bin/pip install --require-hashes --no-deps -r requirements/scaler.lock
COPY pyproject.toml README.md LICENSE ./
COPY lagscale lagscale
COPY services services
COPY migrations migrations
RUN pip wheel --no-deps --wheel-dir /wheels . \
 && /opt/lagscale/bin/pip install --no-deps --no-index /wheels/lagscale-*.whl

FROM python:3.11-slim-bookworm
# The user's number is that of k8s/base.
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /cache --shell /usr/sbin/nologin lagscale \
 && install -d -o lagscale -g lagscale /cache
COPY --from=build /opt/lagscale /opt/lagscale
ENV PATH=/opt/lagscale/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 LAGSCALE_CACHE_DIR=/cache
USER 10001:10001
WORKDIR /cache
VOLUME /cache
EXPOSE 50051 8080
ENTRYPOINT ["lagscale-scaler"]
