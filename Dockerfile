# syntax=docker/dockerfile:1

# Two images from one build: --target hub and --target agent. Each holds one static
# program, the certificate authorities and the directories it writes to; there is no
# shell and no package manager. Both run as a numeric user without a name, so that
# Kubernetes can see that it is not root, and both work with a read-only root.
#
#   docker build --target hub   -t memsvc        --build-arg VERSION=v0.1.0 .
#   docker build --target agent -t memsync-agent --build-arg VERSION=v0.1.0 .
#
# `make image` plays this file and docker-compose.yml on a machine without an engine.

FROM --platform=$BUILDPLATFORM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY . .
ARG TARGETOS
ARG TARGETARCH
ARG VERSION=unknown
ARG COMMIT=unknown
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    GOOS="$TARGETOS" GOARCH="$TARGETARCH" make build VERSION="$VERSION" COMMIT="$COMMIT"
# What the programs may write to. An engine gives a new volume the owner and mode of
# the directory that it covers, so these are made here and not by the programs.
RUN install -d -m 0700 /dirs/hub/memsvc /dirs/agent/memsync/team /dirs/agent/memsync/state \
    /dirs/credentials/admin /dirs/credentials/agent

FROM scratch AS hub
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /src/bin/memsvc /usr/local/bin/memsvc
COPY --from=build --chown=65532:65532 /dirs/hub/ /var/lib/
COPY --from=build --chown=65532:65532 /dirs/credentials/ /credentials/
LABEL org.opencontainers.image.title="memsvc" \
      org.opencontainers.image.description="The hub of shared memories for teams of coding agents" \
      org.opencontainers.image.licenses="Apache-2.0"
# Inside a container loopback reaches nobody, so the APIs listen everywhere: without
# a certificate the hub then refuses to start, unless told --insecure. The ops port
# stays on loopback, where the health check asks it.
ENV PATH=/usr/local/bin \
    MEMSVC_DATA_DIR=/var/lib/memsvc \
    MEMSVC_GRPC_ADDR=:7420 \
    MEMSVC_HTTP_ADDR=:7421
USER 65532:65532
EXPOSE 7420 7421 7422
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --start-interval=1s --retries=3 \
    CMD ["/usr/local/bin/memsvc", "healthcheck"]
ENTRYPOINT ["/usr/local/bin/memsvc"]
CMD ["serve"]

FROM scratch AS agent
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /src/bin/memsync-agent /usr/local/bin/memsync-agent
COPY --from=build --chown=65532:65532 /dirs/agent/ /var/lib/
COPY --from=build --chown=65532:65532 /dirs/credentials/ /credentials/
LABEL org.opencontainers.image.title="memsync-agent" \
      org.opencontainers.image.description="Keeps team/ directories in step with a memsvc hub" \
      org.opencontainers.image.licenses="Apache-2.0"
ENV PATH=/usr/local/bin \
    HOME=/var/lib/memsync \
    MEMSYNC_STATE_DIR=/var/lib/memsync/state
USER 65532:65532
EXPOSE 7423
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --start-interval=1s --retries=3 \
    CMD ["/usr/local/bin/memsync-agent", "healthcheck"]
ENTRYPOINT ["/usr/local/bin/memsync-agent"]
CMD ["run"]
