package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// root is the repository's.
var root = filepath.Join("..", "..", "..", "..")

var chart = filepath.Join(root, "deploy", "helm", "memsvc")

// external is what the values files expect somebody else to make.
var external = []string{"ConfigMap/cluster-ca", "ConfigMap/internal-ca"}

// kubeVersion is the oldest cluster that the chart says it works on.
const kubeVersion = "1.30.0"

// helm runs the real program, which is pinned in this module.
func helm(t *testing.T, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), programs(t).helm, args...)
	// Its own home: neither plugins nor repositories of whoever runs this.
	home := t.TempDir()
	cmd.Env = []string{"HOME=" + home, "HELM_CACHE_HOME=" + home, "HELM_CONFIG_HOME=" + home, "HELM_DATA_HOME=" + home}
	var out, errOut strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err = cmd.Run()
	return out.String(), errOut.String(), err
}

func template(t *testing.T, release string, args ...string) (stdout, stderr string, err error) {
	t.Helper()
	return helm(t, append([]string{"template", release, chart, "--namespace", "memory", "--kube-version", kubeVersion}, args...)...)
}

// rendered renders the chart and judges the result.
func rendered(t *testing.T, release string, args ...string) []object {
	t.Helper()
	text, stderr, err := template(t, release, args...)
	if err != nil {
		t.Fatalf("helm template %s %v: %v\n%s", release, args, err, stderr)
	}
	objects, findings := decode([]byte(text))
	if len(findings) == 0 {
		findings = judge(objects, external)
	}
	for _, f := range findings {
		t.Errorf("helm template %s %v: %s", release, args, f)
	}
	return objects
}

// valuesFiles are the ways to install the chart that are kept working.
func valuesFiles(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(chart, "ci", "values-*.yaml"))
	if err != nil || len(files) < 6 {
		t.Fatalf("values files: %v, %v", files, err)
	}
	return files
}

// TestValuesFiles lints and renders the chart with each of them: under a short name, and
// under the longest that Helm lets a release have.
func TestValuesFiles(t *testing.T) {
	long := strings.Repeat("release-", 6) + "53-ab"
	if len(long) != 53 {
		t.Fatalf("%d characters", len(long))
	}
	for _, file := range valuesFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			t.Parallel()
			if out, stderr, err := helm(t, "lint", "--strict", chart, "-f", file, "--kube-version", kubeVersion); err != nil {
				t.Errorf("helm lint: %v\n%s%s", err, out, stderr)
			}
			short := rendered(t, "memsvc", "-f", file)
			if n := len(rendered(t, long, "-f", file)); n != len(short) || n < 5 {
				t.Errorf("%d objects under a short name, %d under a long one", len(short), n)
			}
			t.Logf("%s: %d objects", filepath.Base(file), len(short))
		})
	}
}

// TestEverythingIsEverything: the fullest values file makes one of each kind that the
// chart knows, so that each is judged; and with monitoring the files that this
// repository's Prometheus and Grafana use are in it.
func TestEverythingIsEverything(t *testing.T) {
	objects := rendered(t, "memsvc", "-f", filepath.Join(chart, "ci", "values-everything.yaml"))
	kinds := map[string]int{}
	for _, o := range objects {
		kinds[o.kind]++
	}
	for _, kind := range []string{
		"BackendTLSPolicy", "Certificate", "ConfigMap", "Deployment", "GRPCRoute", "HorizontalPodAutoscaler", "Ingress", "Job",
		"NetworkPolicy", "Pod", "PodDisruptionBudget", "PrometheusRule", "Service", "ServiceAccount", "ServiceMonitor",
	} {
		if kinds[kind] == 0 {
			t.Errorf("no %s", kind)
		}
	}
	for _, kind := range []struct{ from, suffix string }{{"grafana/dashboards", "*.json"}, {"prometheus/rules", "*.yaml"}} {
		want, have := contents(t, filepath.Join(root, "deploy", kind.from), kind.suffix), contents(t, filepath.Join(chart, "files", filepath.Base(kind.from)), kind.suffix)
		if !maps.Equal(want, have) || len(want) == 0 {
			t.Errorf("the chart has not the files of deploy/%s; run make generate and commit the result", kind.from)
		}
	}
	for name, want := range contents(t, filepath.Join(chart, "files", "dashboards"), "*.json") {
		if !slices.ContainsFunc(objects, func(o object) bool {
			m, ok := o.Object.(*corev1.ConfigMap)
			return ok && strings.TrimSpace(m.Data[name]) == strings.TrimSpace(want)
		}) {
			t.Errorf("%s: no ConfigMap holds it as it is", name)
		}
	}
}

// contents returns the texts of a directory's files, by name.
func contents(t *testing.T, dir, pattern string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, pattern))
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(file)] = string(text)
	}
	return texts
}

// TestSelectorsNeverChange: a selector is for ever; a new version of the chart or the
// program may not be part of it, nor of a claim template.
func TestSelectorsNeverChange(t *testing.T) {
	text, stderr, err := template(t, "memsvc", "-f", filepath.Join(chart, "ci", "values-embedded.yaml"), "-s", "templates/hub.yaml")
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr)
	}
	_, spec, _ := strings.Cut(text, "\nspec:\n")
	if strings.Contains(spec, "helm.sh/chart") || strings.Contains(spec, "app.kubernetes.io/version") {
		t.Errorf("a version is in the specification:\n%s", spec)
	}
}

// TestRefusals: what cannot work is refused with what to do about it. Where the schema
// refuses it too, the templates do so by themselves as well.
func TestRefusals(t *testing.T) {
	embedded := []string{"--set", "tls.mode=none"}
	postgres := []string{"--set", "tls.mode=none,store=postgres,postgres.existingSecret.name=db"}
	for name, c := range map[string]struct {
		base   []string
		set    string
		schema string // what the schema says; "" if it cannot tell
		want   string // what the templates say; "" if only the schema sees it
	}{
		"nothing said about TLS":          {nil, "replicas=1", "", "tls.mode: say secret"},
		"embedded with two replicas":      {embedded, "replicas=2", "/replicas", "one file that one process owns"},
		"embedded with autoscaling":       {embedded, "autoscaling.enabled=true", "/autoscaling/enabled", "exactly one replica"},
		"a store that is none":            {embedded, "store=mysql", "/store", `store "mysql"`},
		"a claim and no persistence":      {embedded, "embedded.persistence.enabled=false,embedded.persistence.existingClaim=c", "", "say which of the two"},
		"postgres without a database":     {embedded, "store=postgres", "", "name the Secret that holds the URL"},
		"two databases":                   {postgres, "postgres.url=postgres://db/x", "", "exclude each other"},
		"a password in the values":        {embedded, "store=postgres,postgres.url=postgres://u:p@db/x", "", "holds a password"},
		"a database that is none":         {embedded, "store=postgres,postgres.url=mysql://db/x", "/postgres/url", ""},
		"scaling upside down":             {postgres, "autoscaling.enabled=true,autoscaling.minReplicas=9,autoscaling.maxReplicas=3", "", "above maxReplicas"},
		"scaling by nothing":              {postgres, "autoscaling.enabled=true,autoscaling.targetCPUUtilizationPercentage=0", "", "give targetCPU"},
		"TLS without a Secret":            {embedded, "tls.mode=secret", "", "tls.secretName"},
		"TLS without an issuer":           {embedded, "tls.mode=certManager", "", "issuerRef.name"},
		"client certificates without TLS": {embedded, "tls.clientCA.secretName=c", "", "need tls.mode"},
		"certificates of no authority":    {embedded, "identity.client-certificates.rules[0].team=x", "", "name the authorities in tls.clientCA"},
		"an identity key that is none":    {embedded, "identity.issuer=x", "/identity", ""},
		"a backend policy without TLS":    {embedded, "gateway.backendTLS.enabled=true", "", "no certificate to check"},
		"an ingress without a host":       {embedded, "ingress.grpc.enabled=true", "", "ingress.grpc.host"},
		"a route without a gateway":       {embedded, "gateway.http.enabled=true", "", "gateway.http.parentRefs"},
		"a way to no service":             {embedded, "ingress.http.enabled=true,ingress.http.host=h,service.http.enabled=false", "", "need service.http.enabled"},
		"too little time to end":          {embedded, "terminationGracePeriodSeconds=14", "", "15 seconds to end in order"},
		"a setting that the chart makes":  {embedded, "config.grpc-addr=:1", "", "config.grpc-addr: the chart sets this itself"},
		"a secret among the settings":     {embedded, "config.database-url=x", "", "config.database-url: the chart sets this itself"},
		"a misspelt value":                {embedded, "replica=1", "replica", ""},
		"a misspelt value further down":   {embedded, "service.grpc.ports=1", "/service/grpc", ""},
		"a setting that no flag can be":   {embedded, "config.Max_Watchers=1", "'Max_Watchers' does not match", ""},
		"a digest that is none":           {embedded, "image.digest=latest", "/image/digest", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append(append([]string{}, c.base...), "--set", c.set)
			if c.schema != "" {
				refused(t, args, c.schema)
			}
			if c.want != "" {
				refused(t, append(args, "--skip-schema-validation"), c.want)
			}
		})
	}
}

func refused(t *testing.T, args []string, want string) {
	t.Helper()
	out, stderr, err := template(t, "memsvc", args...)
	if err == nil || !strings.Contains(stderr, want) || out != "" {
		t.Errorf("%v: %v, want %q in:\n%s", args, err, want, stderr)
	}
}
