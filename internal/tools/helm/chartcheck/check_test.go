package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// good is a release in which everything fits.
const good = `
apiVersion: v1
kind: ConfigMap
metadata: {name: app}
data:
  config.yaml: |
    drain-timeout: 10s
---
apiVersion: v1
kind: Service
metadata: {name: app-ops, labels: {kind: ops, job: memsvc}}
spec:
  clusterIP: None
  selector: {app: a}
  ports: [{name: ops, port: 7422, targetPort: ops}]
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: app}
spec:
  serviceName: app-ops
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec:
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: 25
      securityContext: {runAsNonRoot: true, seccompProfile: {type: RuntimeDefault}}
      containers:
        - name: c
          image: i:1
          ports: [{name: ops, containerPort: 7422}]
          readinessProbe: {httpGet: {path: /readyz, port: ops}}
          lifecycle: {preStop: {sleep: {seconds: 5}}}
          resources: {requests: {cpu: 1m, memory: 1Mi}, limits: {memory: 1Mi}}
          securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
          volumeMounts:
            - {name: config, mountPath: /etc/config.yaml, subPath: config.yaml}
            - {name: data, mountPath: /data}
      volumes:
        - {name: config, configMap: {name: app}}
  volumeClaimTemplates:
    - metadata: {name: data}
      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: app}
spec: {maxUnavailable: 1, selector: {matchLabels: {app: a}}}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: app}
spec:
  podSelector: {matchLabels: {app: a}}
  ingress: [{ports: [{port: ops, protocol: TCP}]}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: app}
spec:
  rules: [{host: h.example, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: app-ops, port: {name: ops}}}}]}}]
---
apiVersion: gateway.networking.k8s.io/v1
kind: GRPCRoute
metadata: {name: app}
spec:
  parentRefs: [{name: g}]
  rules: [{backendRefs: [{name: app-ops, port: 7422}]}]
---
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {name: app}
spec:
  jobLabel: job
  selector: {matchLabels: {kind: ops}}
  endpoints: [{port: ops, interval: 30s}]
---
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata: {name: app}
spec: {groups: [{name: g, rules: [{alert: A, expr: up == 0, for: 5m}]}]}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: app}
spec: {secretName: app-tls, dnsNames: [app], issuerRef: {name: ca}}
`

func check(t *testing.T, text string) (code int, out string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "m.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr strings.Builder
	code = run([]string{file}, strings.NewReader(""), &stdout, &stderr)
	return code, stdout.String() + stderr.String()
}

// TestFindings breaks the good release in one place each.
func TestFindings(t *testing.T) {
	if code, out := check(t, good); code != 0 || !strings.Contains(out, "10 objects") {
		t.Fatalf("the good release: exit %d, %s", code, out)
	}
	for name, c := range map[string]struct{ old, new, want string }{
		"a field that the kind does not have": {"terminationGracePeriodSeconds", "terminationGracePeriodSecond", `unknown field "spec.template.spec.terminationGracePeriodSecond"`},
		"an unknown field of another API":     {"interval: 30s", "intervall: 30s", `unknown field "spec.endpoints[0].intervall"`},
		"an unknown field of a route":         {"parentRefs: [{name: g}]", "parentRefs: [{nam: g}]", `unknown field "spec.parentRefs[0].nam"`},
		"an unknown field of a certificate":   {"dnsNames", "dnsName", `unknown field "spec.dnsName"`},
		"a field twice":                       {"serviceName: app-ops", "serviceName: app-ops\n  serviceName: app-ops", `already set in map`},
		"a number where text belongs":         {"image: i:1", "image: 1", "cannot unmarshal number"},
		"a kind that does not exist":          {"kind: Ingress", "kind: Ingres", `no kind "Ingres"`},
		"an API version that is gone":         {"policy/v1", "policy/v1beta9", `no kind "PodDisruptionBudget"`},
		"not YAML":                            {"metadata: {name: app}", "metadata: {name: app", "document 1"},
		"a name that none can have":           {"kind: PodDisruptionBudget\nmetadata: {name: app}", "kind: PodDisruptionBudget\nmetadata: {name: App_1}", "PodDisruptionBudget/App_1: name: "},
		"a label that none can have":          {"labels: {kind: ops, job: memsvc}", "labels: {kind: ops, job: memsvc, v: a+b}", "Service/app-ops: labels: Invalid value"},
		"a selector past its pods":            {"selector: {matchLabels: {app: a}}\n  template", "selector: {matchLabels: {app: b}}\n  template", "its selector does not match its own pods"},
		"a service without pods":              {"selector: {app: a}", "selector: {app: b}", "Service/app-ops: selects no pod"},
		"a service past its port":             {"targetPort: ops", "targetPort: op", `port ops leads to "op"`},
		"a budget without pods":               {"maxUnavailable: 1, selector: {matchLabels: {app: a}}", "maxUnavailable: 1, selector: {matchLabels: {app: b}}", "PodDisruptionBudget/app: selects no pod"},
		"a policy for another port":           {"ports: [{port: ops, protocol: TCP}]", "ports: [{port: op, protocol: TCP}]", "port op: its pods have no such port"},
		"an ingress into nothing":             {"service: {name: app-ops", "service: {name: app-op", `Ingress/app: no Service "app-op"`},
		"an ingress to another port":          {"port: {name: ops}}}}]", "port: {name: grpc}}}}]", "Service app-ops has no port grpc"},
		"a route to another port":             {"{name: app-ops, port: 7422}", "{name: app-ops, port: 7420}", "Service app-ops has no port 7420"},
		"a monitor without service":           {"matchLabels: {kind: ops}", "matchLabels: {kind: op}", "ServiceMonitor/app: selects no Service"},
		"a monitor under another job":         {"job: memsvc", "job: other", `the job would be "other"`},
		"no rules":                            {"{groups: [{name: g, rules: [{alert: A, expr: up == 0, for: 5m}]}]}", "{groups: []}", "PrometheusRule/app: has no rules"},
		"a certificate without issuer":        {"issuerRef: {name: ca}", "issuerRef: {}", "Certificate/app: needs"},
		"a probe of no port":                  {"path: /readyz, port: ops", "path: /readyz, port: op", "a probe asks port op"},
		"a mount of no volume":                {"{name: config, mountPath", "{name: confi, mountPath", `mounts "confi", which is no volume`},
		"a volume that nothing mounts":        {"volumes:", "volumes:\n        - {name: x, emptyDir: {}}", `volume "x": nothing mounts it`},
		"a file that the map does not hold":   {"config.yaml: |", "confi.yaml: |", `ConfigMap app has no "config.yaml"`},
		"a map that is not there":             {"configMap: {name: app}", "configMap: {name: other}", `no ConfigMap "other"`},
		"two mounts at one place":             {"mountPath: /data", "mountPath: /etc/config.yaml", "two mounts at /etc/config.yaml"},
		"an account that is not there":        {"automountServiceAccountToken: false", "automountServiceAccountToken: false\n      serviceAccountName: x", `no ServiceAccount "x"`},
		"a token of the cluster":              {"automountServiceAccountToken: false", "enableServiceLinks: false", "its pods get a token of the cluster"},
		"root":                                {"runAsNonRoot: true", "runAsNonRoot: false", "must say runAsNonRoot"},
		"a root that can be written":          {"readOnlyRootFilesystem: true", "readOnlyRootFilesystem: false", "have a read-only root"},
		"capabilities":                        {"drop: [ALL]", "drop: [NET_RAW]", "must drop ALL capabilities"},
		"no bound for memory":                 {"limits: {memory: 1Mi}", "limits: {cpu: 1}", "needs requests"},
		"killed before it has drained":        {"terminationGracePeriodSeconds: 25", "terminationGracePeriodSeconds: 12", "are killed after 12s and need 15s"},
		"a headless service that is missing":  {"serviceName: app-ops", "serviceName: app-op", `StatefulSet/app: no Service "app-op"`},
		"a secret":                            {"kind: ConfigMap\nmetadata: {name: app}\ndata:\n  config.yaml: |\n    drain-timeout: 10s", "kind: Secret\nmetadata: {name: app}\ndata: {}", "a chart makes no Secret"},
	} {
		t.Run(name, func(t *testing.T) {
			broken := strings.Replace(good, c.old, c.new, 1)
			if broken == good {
				t.Fatalf("%q is not in the good release", c.old)
			}
			if code, out := check(t, broken); code != 1 || !strings.Contains(out, c.want) {
				t.Errorf("exit %d, want %q in:\n%s", code, c.want, out)
			}
		})
	}
	if code, out := check(t, good+"---"+strings.SplitN(good, "---", 2)[0]); code != 1 || !strings.Contains(out, "ConfigMap/app: is there twice") {
		t.Errorf("an object twice: exit %d, %s", code, out)
	}
	long := strings.ReplaceAll(good, "kind: StatefulSet\nmetadata: {name: app}", "kind: StatefulSet\nmetadata: {name: "+strings.Repeat("a", 53)+"}")
	if code, out := check(t, long); code != 1 || !strings.Contains(out, "53 characters") {
		t.Errorf("a long name: exit %d, %s", code, out)
	}
}

// TestCalledWrongly: no file, a file that is not there, a flag that is none.
func TestCalledWrongly(t *testing.T) {
	for _, args := range [][]string{{}, {filepath.Join(t.TempDir(), "none")}, {"-x"}} {
		var stdout, stderr strings.Builder
		if code := run(args, strings.NewReader(""), &stdout, &stderr); code != 2 || stderr.String() == "" {
			t.Errorf("%q: exit %d, %q", args, code, stderr.String())
		}
	}
}

// TestExamples checks the manifests that show how agents run in a cluster.
func TestExamples(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(root, "deploy", "kubernetes", "*.yaml"))
	if err != nil || len(files) < 2 {
		t.Fatalf("examples: %v, %v", files, err)
	}
	for _, file := range files {
		var stdout, stderr strings.Builder
		if code := run([]string{"-external", "ConfigMap/memsvc-ca", file}, strings.NewReader(""), &stdout, &stderr); code != 0 {
			t.Errorf("%s: exit %d\n%s%s", file, code, stdout.String(), stderr.String())
		}
		t.Log(strings.TrimSpace(stdout.String()))
	}
}
