package main

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"io"
	"math/big"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// TestRenderedHubStarts runs the hub with the arguments and the settings file that the
// chart gives it, and asks it what its probes ask. Only the paths and the addresses are
// other ones.
func TestRenderedHubStarts(t *testing.T) {
	for _, values := range []string{"values-embedded", "values-trial", "values-ingress", "values-oidc"} {
		t.Run(values, func(t *testing.T) {
			t.Parallel()
			objects := rendered(t, "memsvc", "-f", filepath.Join(chart, "ci", values+".yaml"))
			r := &release{objects: objects}
			workload, ok := r.find("StatefulSet", "memsvc").Object.(*appsv1.StatefulSet)
			if !ok {
				t.Fatal("no StatefulSet memsvc")
			}
			c := workload.Spec.Template.Spec.Containers[0]
			dir := t.TempDir()
			here := strings.NewReplacer(
				"/etc/memsvc", dir, "/var/lib/memsvc", filepath.Join(dir, "data"),
				`":7420"`, `"127.0.0.1:0"`, `":7421"`, `"127.0.0.1:0"`, `":7422"`, `"127.0.0.1:0"`)
			settings(t, r, workload.Spec.Template.Spec, here)
			certificate(t, filepath.Join(dir, "tls"))
			certificate(t, filepath.Join(dir, "cluster"))
			write(t, filepath.Join(dir, "cluster", "token"), "a-token")
			if err := os.Rename(filepath.Join(dir, "cluster", "tls.crt"), filepath.Join(dir, "cluster", "ca.crt")); err != nil {
				t.Fatal(err)
			}

			ops := start(t, dir, programs(t).memsvc, here, c.Args)
			for _, probe := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
				if code := get(t, "http://"+ops+probe.HTTPGet.Path); code != http.StatusOK {
					t.Errorf("%s: %d", probe.HTTPGet.Path, code)
				}
			}
			// What helm test does, and what the image's own health check does.
			test, ok := r.find("Pod", "memsvc-test").Object.(*corev1.Pod)
			if !ok {
				t.Fatal("no test pod")
			}
			args := strings.Join(test.Spec.Containers[0].Args, "\n")
			args = strings.ReplaceAll(args, "memsvc-ops:7422", ops)
			if out, err := exec.CommandContext(t.Context(), programs(t).memsvc, strings.Split(args, "\n")...).CombinedOutput(); err != nil || string(out) != "ready\n" {
				t.Errorf("helm test: %v, %s", err, out)
			}
		})
	}
}

// settings writes the files of every ConfigMap where the pod has them.
func settings(t *testing.T, r *release, spec corev1.PodSpec, here *strings.Replacer) {
	t.Helper()
	for _, m := range spec.Containers[0].VolumeMounts {
		for _, v := range spec.Volumes {
			if v.Name != m.Name || v.ConfigMap == nil {
				continue
			}
			files, ok := r.find("ConfigMap", v.ConfigMap.Name).Object.(*corev1.ConfigMap)
			if !ok {
				t.Fatalf("no ConfigMap %s", v.ConfigMap.Name)
			}
			if m.SubPath != "" {
				write(t, here.Replace(m.MountPath), here.Replace(files.Data[m.SubPath]))
				continue
			}
			for name, text := range files.Data {
				write(t, filepath.Join(here.Replace(m.MountPath), name), here.Replace(text))
			}
		}
	}
}

// start runs a hub as a pod would, with nothing in its environment, returns the address
// of its ops port, and ends it in order when the test is over.
func start(t *testing.T, dir, program string, here *strings.Replacer, args []string) (ops string) {
	t.Helper()
	var own []string
	for _, a := range args {
		own = append(own, here.Replace(a))
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Minute)
	cmd := exec.CommandContext(ctx, program, own...)
	cmd.Dir, cmd.Env = dir, []string{}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	var said strings.Builder
	t.Cleanup(func() {
		defer cancel()
		_ = cmd.Process.Signal(syscall.SIGTERM)
		for lines.Scan() {
			said.WriteString(lines.Text() + "\n")
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s %q: %v\n%s", program, own, err, said.String())
		}
	})
	for lines.Scan() {
		said.WriteString(lines.Text() + "\n")
		var line struct{ Msg, Ops string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "listening" {
			return line.Ops
		}
	}
	t.Fatalf("%s %q does not listen:\n%s", program, own, said.String())
	return ""
}

func get(t *testing.T, url string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// certificate writes what a Secret of type kubernetes.io/tls holds.
func certificate(t *testing.T, dir string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	about := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "memsvc"}, DNSNames: []string{"memsvc"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "tls.crt"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	write(t, filepath.Join(dir, "tls.key"), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})))
}

// TestExampleAgentsServe runs the agent as both examples would, with a hub that is not
// there: it serves, and its health check says so.
func TestExampleAgentsServe(t *testing.T) {
	for file, kind := range map[string]string{"agent-daemonset.yaml": "DaemonSet", "agent-sidecar.yaml": "StatefulSet"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(filepath.Join(root, "deploy", "kubernetes", file))
			if err != nil {
				t.Fatal(err)
			}
			objects, findings := decode(text)
			if len(findings) > 0 {
				t.Fatal(findings)
			}
			dir := t.TempDir()
			var c corev1.Container
			for _, o := range objects {
				switch x := o.Object.(type) {
				case *appsv1.DaemonSet:
					c = x.Spec.Template.Spec.Containers[0]
				case *appsv1.StatefulSet:
					c = x.Spec.Template.Spec.InitContainers[0]
				}
			}
			here := strings.NewReplacer(
				"/etc/memsync-agent", filepath.Join(dir, "settings"), "/etc/memsync", filepath.Join(dir, "token"), "/etc/memsvc-ca", filepath.Join(dir, "ca"),
				"/srv/memsync", filepath.Join(dir, "srv"), "/home/agent", filepath.Join(dir, "home"),
				"memsvc.memsvc.svc:7420", "127.0.0.1:1", ":7423", "127.0.0.1:0")
			for _, o := range objects {
				if m, ok := o.Object.(*corev1.ConfigMap); ok {
					write(t, filepath.Join(dir, "settings", "config.yaml"), here.Replace(m.Data["config.yaml"]))
				}
			}
			certificate(t, filepath.Join(dir, "ca"))
			if err := os.Rename(filepath.Join(dir, "ca", "tls.crt"), filepath.Join(dir, "ca", "ca.crt")); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, "token", "token"), "msv_"+strings.Repeat("0", 49)+"\n")
			for _, home := range []string{"srv", "home"} {
				if err := os.MkdirAll(filepath.Join(dir, home), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			serve(t, dir, c, here)
		})
	}
}

func serve(t *testing.T, dir string, c corev1.Container, here *strings.Replacer) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	variables := []string{}
	for _, e := range c.Env {
		variables = append(variables, e.Name+"="+here.Replace(e.Value))
	}
	command := func(args []string) *exec.Cmd {
		var own []string
		for _, a := range args {
			own = append(own, here.Replace(a))
		}
		cmd := exec.CommandContext(ctx, programs(t).agent, own...)
		cmd.Dir, cmd.Env = dir, variables
		return cmd
	}
	var said strings.Builder
	agent := command(c.Args)
	agent.Stderr = &said
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- agent.Wait() }()
	for { // each try takes the time of a process
		out, err := command(c.StartupProbe.Exec.Command[1:]).CombinedOutput()
		if err == nil && strings.HasPrefix(string(out), "serving, links: ") {
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("the agent ended: %v\n%s", err, said.String())
		case <-ctx.Done():
			t.Fatalf("the agent does not serve: %s", out)
		default:
		}
	}
	if err := agent.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the agent: %v\n%s", err, said.String())
	}
}

// TestEverySettingIsAFlag lets the hub read the fullest settings file: it knows every
// key, and the first that it misses is the certificate. It would say so of a key.
func TestEverySettingIsAFlag(t *testing.T) {
	r := &release{objects: rendered(t, "memsvc", "-f", filepath.Join(chart, "ci", "values-everything.yaml"))}
	files, ok := r.find("ConfigMap", "memsvc-hub").Object.(*corev1.ConfigMap)
	if !ok {
		t.Fatal("no ConfigMap memsvc-hub")
	}
	dir := t.TempDir()
	text := strings.ReplaceAll(files.Data["config.yaml"], "/etc/memsvc", dir)
	for want, text := range map[string]string{
		"TLS: certificate " + dir + "/tls/tls.crt": text,
		`unknown setting "otlp-end"`:               strings.Replace(text, "otlp-endpoint", "otlp-end", 1),
	} {
		name := filepath.Join(dir, "config.yaml")
		write(t, name, text)
		cmd := exec.CommandContext(t.Context(), programs(t).memsvc, "serve", "--config", name)
		cmd.Dir, cmd.Env = dir, []string{}
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%v, want %q in: %s", err, want, out)
		}
	}
}
