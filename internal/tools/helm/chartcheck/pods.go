package main

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"
)

// pod checks that a pod can start as it is described, and that it meets the
// "restricted" standard for pods with a root that is read-only.
func (r *release) pod(p pod) {
	s := p.spec
	if s.AutomountServiceAccountToken == nil || *s.AutomountServiceAccountToken {
		r.say(p.owner, "its pods get a token of the cluster, which nothing in them uses")
	}
	if s.ServiceAccountName != "" {
		r.exists(p.owner, "ServiceAccount", s.ServiceAccountName)
	}
	if c := s.SecurityContext; c == nil || !is(c.RunAsNonRoot, true) || c.SeccompProfile == nil || c.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		r.say(p.owner, "its pods must say runAsNonRoot and seccompProfile RuntimeDefault")
	}
	r.volumes(p)
	for _, c := range slices.Concat(s.InitContainers, s.Containers) {
		r.container(p, c)
	}
	r.ending(p)
}

func is(b *bool, want bool) bool { return b != nil && *b == want }

func (r *release) container(p pod, c corev1.Container) {
	say := func(text string) { r.say(p.owner, "container %s: %s", c.Name, text) }
	sec := c.SecurityContext
	if sec == nil || !is(sec.AllowPrivilegeEscalation, false) || !is(sec.ReadOnlyRootFilesystem, true) ||
		sec.Capabilities == nil || !slices.Contains(sec.Capabilities.Drop, "ALL") || is(sec.Privileged, true) {
		say("must drop ALL capabilities, allow no privilege escalation and have a read-only root")
	}
	if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
		say("needs requests for CPU and memory, and a limit for memory")
	}
	for _, probe := range []*corev1.Probe{c.StartupProbe, c.LivenessProbe, c.ReadinessProbe} {
		if probe == nil || probe.HTTPGet == nil || probe.HTTPGet.Port.Type != intstr.String {
			continue
		}
		if name := probe.HTTPGet.Port.StrVal; !slices.ContainsFunc(c.Ports, func(port corev1.ContainerPort) bool { return port.Name == name }) {
			say("a probe asks port " + name + ", which it does not have")
		}
	}
	for _, e := range c.EnvFrom {
		if e.ConfigMapRef != nil && !is(e.ConfigMapRef.Optional, true) {
			r.exists(p.owner, "ConfigMap", e.ConfigMapRef.Name)
		}
	}
}

// volumes checks that every mount has its volume, every volume a mount, and that
// ConfigMaps hold the files that are mounted from them.
func (r *release) volumes(p pod) {
	used := map[string]bool{}
	var paths []string
	for _, c := range slices.Concat(p.spec.InitContainers, p.spec.Containers) {
		paths = paths[:0]
		for _, m := range c.VolumeMounts {
			used[m.Name] = true
			i := slices.IndexFunc(p.spec.Volumes, func(v corev1.Volume) bool { return v.Name == m.Name })
			if i < 0 {
				if !slices.Contains(p.claims, m.Name) {
					r.say(p.owner, "container %s mounts %q, which is no volume", c.Name, m.Name)
				}
			} else if source := p.spec.Volumes[i].ConfigMap; source != nil && m.SubPath != "" {
				if x, ok := r.find("ConfigMap", source.Name).Object.(*corev1.ConfigMap); ok && x.Data[m.SubPath] == "" {
					r.say(p.owner, "ConfigMap %s has no %q", source.Name, m.SubPath)
				}
			}
			if slices.Contains(paths, m.MountPath) {
				r.say(p.owner, "container %s has two mounts at %s", c.Name, m.MountPath)
			}
			paths = append(paths, m.MountPath)
		}
	}
	for _, v := range p.spec.Volumes {
		if !used[v.Name] {
			r.say(p.owner, "volume %q: nothing mounts it", v.Name)
		}
		if v.ConfigMap != nil && !is(v.ConfigMap.Optional, true) {
			r.exists(p.owner, "ConfigMap", v.ConfigMap.Name)
		}
	}
}

// ending checks that a pod has the time to end in order: the kubelet's patience covers
// the wait before the signal and what the hub's settings allow for draining.
func (r *release) ending(p pod) {
	need := time.Duration(0)
	for _, c := range p.spec.Containers {
		if c.Lifecycle != nil && c.Lifecycle.PreStop != nil && c.Lifecycle.PreStop.Sleep != nil {
			need += time.Duration(c.Lifecycle.PreStop.Sleep.Seconds) * time.Second
		}
	}
	for _, v := range p.spec.Volumes {
		if v.ConfigMap == nil {
			continue
		}
		x, ok := r.find("ConfigMap", v.ConfigMap.Name).Object.(*corev1.ConfigMap)
		if !ok || x.Data["config.yaml"] == "" {
			continue
		}
		var settings struct {
			Drain string `json:"drain-timeout"`
		}
		if err := yaml.Unmarshal([]byte(x.Data["config.yaml"]), &settings); err != nil {
			r.say(p.owner, "ConfigMap %s: config.yaml: %v", x.Name, err)
			continue
		}
		if drain, err := time.ParseDuration(settings.Drain); err == nil {
			need += drain
		}
	}
	grace := 30 * time.Second // the API's default
	if p.spec.TerminationGracePeriodSeconds != nil {
		grace = time.Duration(*p.spec.TerminationGracePeriodSeconds) * time.Second
	}
	if grace < need {
		r.say(p.owner, "its pods are killed after %s and need %s to end in order", grace, need)
	}
}
