# Everything a person or the CI runs. `make help` lists the targets.

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

MODULE  := github.com/memsvc/memsvc
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
COMMIT  ?= $(shell git rev-parse HEAD 2>/dev/null || echo unknown)
LDFLAGS := -s -w \
	-X $(MODULE)/internal/buildinfo.version=$(VERSION) \
	-X $(MODULE)/internal/buildinfo.commit=$(COMMIT)

# The version comes from LDFLAGS; asking git again would only make builds fail
# in checkouts that git refuses to read (other owner, no .git).
export GOFLAGS := $(filter-out -buildvcs=%,$(GOFLAGS)) -buildvcs=false

# Tools are pinned, each in its own modfile where the dependencies clash, and
# built from source on first use; nothing needs to be installed.
TOOL := go tool -modfile=internal/tools/go.mod
BUF  := go tool -modfile=internal/tools/buf/go.mod buf
LINT := go tool -modfile=internal/tools/lint/go.mod golangci-lint

FUZZTIME  ?= 5s
BENCHTIME ?= 1s
SEEDS     ?=
SIMTIME   ?= 60s
# Packages with benchmarks; found, so that a new one needs no line here.
BENCH_PKGS ?= $(sort $(dir $(shell grep -rlE '^func Benchmark' --include='*_test.go' internal | sed 's|^|./|')))

.PHONY: help
help: ## Show this list
	@echo 'memsvc: shared memory for teams of coding agents'; echo; echo 'Targets:'
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo; echo 'Variables: FUZZTIME=$(FUZZTIME) BENCHTIME=$(BENCHTIME) SEEDS=$(SEEDS) SIMTIME=$(SIMTIME) VERSION=$(VERSION)'

.PHONY: build
build: ## Build bin/memsvc and bin/memsync-agent, static
	CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/memsvc ./cmd/memsync-agent

.PHONY: demo
demo: build ## Start a hub and two agents and show a day's work (DEMO_ONCE=1: check it and end)
	CGO_ENABLED=0 go run ./hack/demo

.PHONY: test
test: ## Vet and test everything; needs Go and make only
	CGO_ENABLED=0 go vet ./...
	CGO_ENABLED=0 go test -vet=off -timeout 20m ./...

.PHONY: platforms
platforms: ## Vet everything, tests too, as macOS and Windows compile it
	GOOS=darwin CGO_ENABLED=0 go vet ./...
	GOOS=windows CGO_ENABLED=0 go vet ./...

.PHONY: race
race: ## Test everything under the race detector; needs a C compiler
	CGO_ENABLED=1 go test -race -vet=off -timeout 30m ./...

.PHONY: lint
lint: ## Check formatting, Go style, layer rules and the proto contract
	@unformatted=$$(gofmt -l $(wildcard api cmd hack internal)); \
	if [ -n "$$unformatted" ]; then echo "not gofmt'ed (run gofmt -w):"; echo "$$unformatted"; exit 1; fi
	$(LINT) run ./...
	$(BUF) lint
	$(BUF) format --diff --exit-code api/proto

.PHONY: breaking
breaking: ## Check the proto contract against the one that landed before
	./hack/breaking.sh $(BUF)

.PHONY: generate
generate: ## Regenerate Go, gateway and OpenAPI from api/proto, and the dashboards
	./hack/generate.sh . $(BUF)
	./hack/chart-files.sh .

.PHONY: generate-check
generate-check: ## Fail if the generated files are stale
	./hack/generate-check.sh $(BUF)

.PHONY: chart
chart: ## Render, lint and judge the Helm chart and the Kubernetes examples; no cluster
	cd internal/tools/helm && export CGO_ENABLED=0 && go vet ./... && \
		go test -vet=off -count=1 -timeout 20m -v ./... | grep -vE '^(=== | +--- PASS)'

.PHONY: image
image: ## Play the Dockerfile and docker-compose.yml without an engine; needs root and PostgreSQL
	cd internal/tools/image && export CGO_ENABLED=0 && go vet ./... && go test -vet=off ./...
	CGO_ENABLED=0 go build -modfile=internal/tools/prometheus/go.mod -tags remove_all_sd -o bin/prometheus/ github.com/prometheus/prometheus/cmd/prometheus
	cd internal/tools/image && CGO_ENABLED=0 go run ./rehearse -prometheus "$(CURDIR)/bin/prometheus/prometheus" ../../..

.PHONY: fuzz
fuzz: ## Run every fuzz test for FUZZTIME
	FUZZTIME=$(FUZZTIME) ./hack/fuzz.sh

.PHONY: bench
bench: ## Run the benchmarks (BENCH_PKGS, BENCHTIME)
	CGO_ENABLED=0 go test -run '^$$' -bench . -benchtime $(BENCHTIME) -timeout 60m $(BENCH_PKGS)

.PHONY: quality
quality: ## Print how good extraction and tidying are on the labelled sets
	CGO_ENABLED=0 go test -count=1 -timeout 10m -v -run '^TestQuality' ./internal/lifecycle/extract ./internal/lifecycle/dream | grep -vE '^(=== |\s*$$|    --- )'

.PHONY: simulate
simulate: ## Simulate many machines and faults with SEEDS seeds, or for SIMTIME
	CGO_ENABLED=0 go test -count=1 -timeout 60m ./internal/simtest -v -run '^TestSimulate(Solo)?$$' $(if $(SEEDS),-seeds=$(SEEDS),-simtime=$(SIMTIME))

.PHONY: upgrade
upgrade: ## Upgrade replicas and agents from the programs of revision FROM to these, under load
	./hack/upgrade.sh $(FROM)

.PHONY: rules
rules: ## Check alert rules and dashboards with Prometheus itself (built on first use, some minutes)
	./hack/rules.sh

.PHONY: clients
clients: ## Run real coding clients against a scripted model (needs npm; DIR keeps what it fetches)
	./hack/clients.sh $(DIR)

.PHONY: grpcurl
grpcurl: ## Call a running hub: make grpcurl ARGS='-plaintext 127.0.0.1:7420 list'
	@$(TOOL) grpcurl $(ARGS)
