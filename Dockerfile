# Three images from one file: `docker build --target sink .`, `--target dashboard`, `--target access`.
# Each takes its members' wheels and pinned, hashed dependencies into an environment of its own; the
# final stages hold that environment, Python, and nothing to build or install with.
FROM python:3.13-slim-bookworm AS build
WORKDIR /build
ENV UV_LINK_MODE=copy UV_COMPILE_BYTECODE=1
RUN pip install --no-cache-dir 'uv>=0.13,<0.14'
COPY requirements.lock ./
COPY schemas schemas
COPY store store

FROM build AS build-sink
COPY consumers consumers
RUN for member in schemas store consumers; do uv build --wheel --out-dir /wheels "$member" || exit 1; done
RUN uv venv /sink && uv pip install --python /sink/bin/python --constraint requirements.lock \
      --find-links /wheels approvaltrail-consumers

FROM build AS build-dashboard
COPY dashboard dashboard
RUN for member in schemas store dashboard; do uv build --wheel --out-dir /wheels "$member" || exit 1; done
RUN uv venv /dashboard && uv pip install --python /dashboard/bin/python --constraint requirements.lock \
      --find-links /wheels approvaltrail-dashboard

FROM build AS build-access
RUN uv venv /access && uv pip install --python /access/bin/python --constraint requirements.lock \
      confluent-kafka cryptography pyyaml

FROM python:3.13-slim-bookworm AS runtime
RUN pip uninstall --yes pip && rm -rf /root/.cache \
 && groupadd --gid 10001 approvaltrail \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /nonexistent approvaltrail
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
WORKDIR /

FROM runtime AS sink
COPY --from=build-sink /sink /sink
USER 10001:10001
ENTRYPOINT ["/sink/bin/python", "-m", "approvaltrail.consumers.sink"]

FROM runtime AS dashboard
COPY --from=build-dashboard /dashboard /dashboard
USER 10001:10001
ENTRYPOINT ["/dashboard/bin/python", "-m", "approvaltrail.dashboard"]

# Makes certificates, passwords and access rights. A new volume takes the owner of the folder that it is
# mounted on, so these folders let the job write without being root.
FROM runtime AS access
COPY --from=build-access /access /access
COPY deploy/make_secrets.py deploy/grant_access.py deploy/acls.yaml /deploy/
RUN for name in authority administrator kafka-1 kafka-2 kafka-3 clickhouse producer sink operator migrate \
      dashboard viewer door; do install -d -o 10001 -g 10001 -m 0750 "/secrets/$name"; done
USER 10001:10001
ENTRYPOINT ["/access/bin/python", "/deploy/make_secrets.py", "/secrets"]
