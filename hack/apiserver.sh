#!/usr/bin/env bash
# Puts every manifest before a real API server: kube-apiserver and etcd, built from
# their Go modules, started on loopback and ended with this script. Everything that the
# chart renders, for each values file, and the examples are created for real, with
# strict field validation, in a namespace that enforces the "restricted" pod security
# standard where the manifests allow it. Nothing runs: there is no kubelet.
#
# The first build takes seven minutes of processor time and some GiB of disk, so that
# the CI does without. Needs Go, kubectl and openssl.
#
# usage: hack/apiserver.sh
set -euo pipefail
cd "$(dirname "$0")/.."
export CGO_ENABLED=0

work=$(mktemp -d)
started=()
end() {
	# At once: the API server would wait for an etcd that has ended, and all of it is thrown away.
	for pid in "${started[@]}"; do
		kill -KILL "$pid" 2>/dev/null || true
		wait "$pid" 2>/dev/null || true
	done
	rm -rf "$work"
}
trap end EXIT

# Programs, pinned in their modules. APISERVER_BIN keeps them from run to run.
bin=${APISERVER_BIN:-$work/bin}
mkdir -p "$bin"
kube=$(sed -n 's|^\tk8s.io/kubernetes \(v.*\)|\1|p' internal/tools/apiserver/go.mod)
# Without its version the server would say of itself that it is v0.0.0.
stamp="-X k8s.io/component-base/version.gitVersion=$kube"
[[ -x $bin/kube-apiserver ]] || (cd internal/tools/apiserver && go build -p 2 -ldflags "$stamp" -o "$bin/" k8s.io/kubernetes/cmd/kube-apiserver)
[[ -x $bin/etcd ]] || (cd internal/tools/apiserver && go build -p 2 -o "$bin/etcd" go.etcd.io/etcd/server/v3)
(cd internal/tools/helm && go build -o "$bin/" helm.sh/helm/v4/cmd/helm ./chartcheck)

free_port() { # a port of loopback that nobody listens on
	local port
	while port=$((20000 + RANDOM % 20000)); do
		(exec 3<>"/dev/tcp/127.0.0.1/$port") 2>/dev/null || { echo "$port"; return; }
	done
}
client=$(free_port) peer=$(free_port) api=$(free_port)

"$bin/etcd" --data-dir "$work/etcd" --listen-client-urls "http://127.0.0.1:$client" --advertise-client-urls "http://127.0.0.1:$client" \
	--listen-peer-urls "http://127.0.0.1:$peer" --initial-advertise-peer-urls "http://127.0.0.1:$peer" \
	--initial-cluster "default=http://127.0.0.1:$peer" >"$work/etcd.log" 2>&1 &
started+=($!)

openssl genrsa -out "$work/account.key" 2048 2>/dev/null
token=$(openssl rand -hex 16)
echo "$token,admin,admin,system:masters" >"$work/tokens.csv"
"$bin/kube-apiserver" --etcd-servers "http://127.0.0.1:$client" --bind-address 127.0.0.1 --secure-port "$api" --cert-dir "$work/cert" \
	--service-account-issuer https://kubernetes.default.svc --service-account-key-file "$work/account.key" \
	--service-account-signing-key-file "$work/account.key" --token-auth-file "$work/tokens.csv" --authorization-mode RBAC \
	--service-cluster-ip-range 10.0.0.0/24 >"$work/api.log" 2>&1 &
started+=($!)

k() { kubectl --kubeconfig /dev/null --server "https://127.0.0.1:$api" --insecure-skip-tls-verify --token "$token" "$@"; }
for ((i = 0; ; i++)); do
	k get --raw /readyz >/dev/null 2>&1 && break
	kill -0 "${started[0]}" "${started[1]}" 2>/dev/null && ((i < 600)) || { tail -20 "$work/etcd.log" "$work/api.log"; exit 1; }
	sleep 0.2
done
echo "API server $(k get --raw /version | sed -n 's/.*"gitVersion": "\(v[^"]*\)".*/\1/p'), etcd $("$bin/etcd" --version | sed -n 's/^etcd Version: //p')"

# The kinds that are no part of Kubernetes, from the modules of the pinned versions.
module() { (cd internal/tools/helm && go mod download -json "$1@$2" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p'); }
version() { sed -n "s|^\t*\(require \)\?$1 \(v[^ ]*\).*|\2|p" internal/tools/helm/go.mod; }
gateway=$(version sigs.k8s.io/gateway-api) manager=$(version github.com/cert-manager/cert-manager)
operator=v0.85.0 # of the operator's own module, which holds the CRDs; older than the types, which is the harder test
k apply --server-side -f "$(module sigs.k8s.io/gateway-api "$gateway")/config/crd/standard" >/dev/null
k apply --server-side -f "$(module github.com/cert-manager/cert-manager "$manager")/deploy/crds" >/dev/null
crds=$(module github.com/prometheus-operator/prometheus-operator "$operator")/example/prometheus-operator-crd
k apply --server-side -f "$crds/monitoring.coreos.com_servicemonitors.yaml" -f "$crds/monitoring.coreos.com_prometheusrules.yaml" >/dev/null
k wait --for condition=established --timeout 60s crd --all >/dev/null
echo "with gateway-api $gateway, cert-manager $manager, prometheus-operator $operator"

# What a cluster of the values files has and this one has not.
k create -f - >/dev/null <<'YAML'
apiVersion: scheduling.k8s.io/v1
kind: PriorityClass
metadata: {name: platform}
value: 1000
---
apiVersion: node.k8s.io/v1
kind: RuntimeClass
metadata: {name: gvisor}
handler: runsc
YAML

total=0
create() { # create NAMESPACE LEVEL FILE WHAT
	k create namespace "$1" >/dev/null
	k label namespace "$1" "pod-security.kubernetes.io/enforce=$2" "pod-security.kubernetes.io/warn=$2" >/dev/null
	k --namespace "$1" create serviceaccount default >/dev/null # a controller's work, and there is none
	k --namespace "$1" create --validate=strict -f "$3" >"$work/created" 2>"$work/warnings" || { cat "$work/created" "$work/warnings"; exit 1; }
	if [[ -s $work/warnings ]]; then
		cat "$work/warnings"
		exit 1
	fi
	local n
	n=$(wc -l <"$work/created")
	total=$((total + n))
	echo "$4: $n objects created, $2 pod security, no warning"
	# A second time, as an upgrade applies them: nothing may be immutable against itself.
	k --namespace "$1" apply --server-side --force-conflicts --dry-run=server -f "$3" >/dev/null
}
for values in deploy/helm/memsvc/ci/values-*.yaml; do
	name=$(basename "$values" .yaml)
	"$bin/helm" template memsvc deploy/helm/memsvc --namespace "$name" -f "$values" >"$work/$name.yaml"
	create "$name" restricted "$work/$name.yaml" "$name"
done
create agent-sidecar restricted deploy/kubernetes/agent-sidecar.yaml agent-sidecar
create agent-daemonset privileged deploy/kubernetes/agent-daemonset.yaml agent-daemonset # it mounts hostPath

# The server has to be able to say no, or the above means nothing: the file that was
# taken a moment ago, with one slip, and what the answer has to name.
slips=0
slip() { # slip SED WANT
	sed "$1" "$work/values-postgres.yaml" >"$work/slip.yaml"
	if k --namespace values-postgres apply --server-side --force-conflicts --dry-run=server --validate=strict -f "$work/slip.yaml" >/dev/null 2>"$work/answer" ||
		! grep -q "$2" "$work/answer"; then
		echo "the API server takes a slip, or names another one: $1"
		cat "$work/answer"
		exit 1
	fi
	slips=$((slips + 1))
}
slip 's/terminationGracePeriodSeconds/terminationGracePeriod/' 'terminationGracePeriod'
slip 's/readOnlyRootFilesystem: true/readOnlyRootFilesystem: perhaps/' 'readOnlyRootFilesystem'
slip 's/port: 7420$/port: 742000/' '742000'
slip 's/maxUnavailable: 1$/maxUnavailable: much/' 'maxUnavailable'
slip 's/runAsNonRoot: true/runAsNonRoot: false/' 'restricted'
echo "$total objects in all; $slips slips refused"
