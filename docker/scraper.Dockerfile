# The scraper: polls Kafka with Spark, so it needs a Java runtime.
# Build from the repository's root: docker build -f docker/scraper.Dockerfile -t lagscale/scraper:0.1.0 .
# With the signer for AWS MSK: --build-arg LOCK=scraper-msk. With Kerberos: docker/gssapi/Dockerfile.
FROM python:3.11-slim-bookworm AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /src
# What the lock names, by hash; nothing else is downloaded into the image.
ARG LOCK=scraper
COPY requirements/scraper.lock requirements/scraper-msk.lock requirements/
RUN python -m venv /opt/lagscale \
 && /opt/lagscale/bin/pip install --require-hashes --no-deps -r requirements/${LOCK}.lock
COPY pyproject.toml README.md LICENSE ./
COPY lagscale lagscale
COPY services services
COPY migrations migrations
RUN pip wheel --no-deps --wheel-dir /wheels . \
 && /opt/lagscale/bin/pip install --no-deps --no-index /wheels/lagscale-*.whl

FROM python:3.11-slim-bookworm
RUN apt-get update \
 && apt-get install --yes --no-install-recommends openjdk-17-jre-headless procps tini \
 && rm -rf /var/lib/apt/lists/*
# The user has a name, because Hadoop's client library inside Spark asks for it; the number is that of k8s/base.
RUN useradd --uid 10001 --user-group --no-create-home --home-dir /cache --shell /usr/sbin/nologin lagscale \
 && install -d -o lagscale -g lagscale /cache
COPY --from=build /opt/lagscale /opt/lagscale
ENV PATH=/opt/lagscale/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 LAGSCALE_CACHE_DIR=/cache
USER 10001:10001
WORKDIR /cache
VOLUME /cache
EXPOSE 8080
# An init reaps what Spark leaves behind: the JVM and its Python workers.
ENTRYPOINT ["tini", "--", "lagscale-scraper"]
