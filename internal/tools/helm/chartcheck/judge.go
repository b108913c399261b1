package main

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// release is a set of manifests that are installed together.
type release struct {
	objects  []object
	external map[string]bool
	pods     []pod
	findings []string
}

// pod is a pod, or what makes pods.
type pod struct {
	owner  object
	labels map[string]string
	spec   *corev1.PodSpec
	claims []string // volumes that the owner makes for each pod
}

func (r *release) say(o fmt.Stringer, format string, args ...any) {
	r.findings = append(r.findings, o.String()+": "+fmt.Sprintf(format, args...))
}

// judge returns what cannot be true of objects that are installed together. external
// names, as KIND/NAME, what somebody else makes.
func judge(objects []object, external []string) []string {
	r := &release{objects: objects, external: map[string]bool{}}
	for _, e := range external {
		r.external[e] = true
	}
	for _, o := range objects {
		r.collect(o)
	}
	r.names()
	for _, o := range objects {
		r.references(o)
	}
	for _, p := range r.pods {
		r.pod(p)
	}
	slices.Sort(r.findings)
	return slices.Compact(r.findings)
}

// collect notes the pods of an object, and whether its own selector finds them.
func (r *release) collect(o object) {
	add := func(t corev1.PodTemplateSpec, selector *metav1.LabelSelector, claims ...string) {
		r.pods = append(r.pods, pod{owner: o, labels: t.Labels, spec: &t.Spec, claims: claims})
		if selector != nil && !matches(selector, t.Labels) {
			r.say(o, "its selector does not match its own pods")
		}
	}
	switch x := o.Object.(type) {
	case *corev1.Pod:
		r.pods = append(r.pods, pod{owner: o, labels: x.Labels, spec: &x.Spec})
	case *appsv1.Deployment:
		add(x.Spec.Template, x.Spec.Selector)
	case *appsv1.DaemonSet:
		add(x.Spec.Template, x.Spec.Selector)
	case *appsv1.StatefulSet:
		var claims []string
		for _, c := range x.Spec.VolumeClaimTemplates {
			claims = append(claims, c.Name)
		}
		add(x.Spec.Template, x.Spec.Selector, claims...)
		if len(o.name) > 52 {
			r.say(o, "its name has %d characters; beyond 52 its pods cannot carry their revision's label", len(o.name))
		}
	case *batchv1.Job:
		add(x.Spec.Template, nil)
	case *corev1.Secret:
		r.say(o, "a chart makes no Secret: its values are stored where many can read")
	}
}

// names checks the names and labels of all objects.
func (r *release) names() {
	seen := map[string]bool{}
	for _, o := range r.objects {
		if seen[o.String()] {
			r.say(o, "is there twice")
		}
		seen[o.String()] = true
		problems := validation.IsDNS1123Subdomain(o.name)
		if o.kind == "Service" {
			problems = validation.IsDNS1035Label(o.name)
		}
		if len(o.name) > 63 {
			problems = append(problems, "longer than 63 characters")
		}
		for _, p := range problems {
			r.say(o, "name: %s", p)
		}
		about, err := meta.Accessor(o.Object)
		if err != nil {
			r.say(o, "%v", err)
			continue
		}
		for _, e := range metavalidation.ValidateLabels(about.GetLabels(), field.NewPath("labels")) {
			r.say(o, "%v", e)
		}
	}
	for _, p := range r.pods {
		for _, e := range metavalidation.ValidateLabels(p.labels, field.NewPath("the pods' labels")) {
			r.say(p.owner, "%v", e)
		}
	}
}

// references checks that what an object points at is there.
func (r *release) references(o object) {
	switch x := o.Object.(type) {
	case *corev1.Service:
		r.service(o, x)
	case *policyv1.PodDisruptionBudget:
		r.selects(o, x.Spec.Selector)
	case *networkingv1.NetworkPolicy:
		r.selects(o, &x.Spec.PodSelector)
		for _, rule := range x.Spec.Ingress {
			for _, p := range rule.Ports {
				if p.Port != nil && p.Port.StrVal != "" && !r.somePodHasPort(x.Spec.PodSelector, p.Port.StrVal) {
					r.say(o, "port %s: its pods have no such port", p.Port.StrVal)
				}
			}
		}
	case *autoscalingv2.HorizontalPodAutoscaler:
		r.exists(o, x.Spec.ScaleTargetRef.Kind, x.Spec.ScaleTargetRef.Name)
		if d, ok := r.find("Deployment", x.Spec.ScaleTargetRef.Name).Object.(*appsv1.Deployment); ok && d.Spec.Replicas != nil {
			r.say(o, "%s sets replicas too: each upgrade would undo the scaling", x.Spec.ScaleTargetRef.Name)
		}
	case *appsv1.StatefulSet:
		r.exists(o, "Service", x.Spec.ServiceName)
	case *networkingv1.Ingress:
		for _, rule := range x.Spec.Rules {
			for _, p := range rule.HTTP.Paths {
				r.backend(o, p.Backend.Service.Name, p.Backend.Service.Port.Name, p.Backend.Service.Port.Number)
			}
		}
	case *gatewayv1.GRPCRoute:
		for _, rule := range x.Spec.Rules {
			for _, b := range rule.BackendRefs {
				r.routeBackend(o, b.BackendObjectReference)
			}
		}
	case *gatewayv1.HTTPRoute:
		for _, rule := range x.Spec.Rules {
			for _, b := range rule.BackendRefs {
				r.routeBackend(o, b.BackendObjectReference)
			}
		}
	case *gatewayv1.BackendTLSPolicy:
		for _, target := range x.Spec.TargetRefs {
			r.exists(o, string(target.Kind), string(target.Name))
		}
		for _, ca := range x.Spec.Validation.CACertificateRefs {
			r.exists(o, string(ca.Kind), string(ca.Name))
		}
	case *monitoringv1.ServiceMonitor:
		r.serviceMonitor(o, x)
	case *monitoringv1.PrometheusRule:
		if len(x.Spec.Groups) == 0 {
			r.say(o, "has no rules")
		}
	case *certmanagerv1.Certificate:
		if x.Spec.SecretName == "" || len(x.Spec.DNSNames) == 0 || x.Spec.IssuerRef.Name == "" {
			r.say(o, "needs a Secret, names and an issuer")
		}
	}
}

func (r *release) find(kind, name string) object {
	i := slices.IndexFunc(r.objects, func(o object) bool { return o.kind == kind && o.name == name })
	if i < 0 {
		return object{}
	}
	return r.objects[i]
}

func (r *release) exists(o object, kind, name string) {
	if r.find(kind, name).Object == nil && !r.external[kind+"/"+name] {
		r.say(o, "no %s %q", kind, name)
	}
}

func matches(s *metav1.LabelSelector, have map[string]string) bool {
	selector, err := metav1.LabelSelectorAsSelector(s)
	return err == nil && !selector.Empty() && selector.Matches(labels.Set(have))
}

func (r *release) selects(o object, s *metav1.LabelSelector) {
	if !slices.ContainsFunc(r.pods, func(p pod) bool { return matches(s, p.labels) }) {
		r.say(o, "selects no pod")
	}
}

func (r *release) somePodHasPort(s metav1.LabelSelector, port string) bool {
	return slices.ContainsFunc(r.pods, func(p pod) bool { return matches(&s, p.labels) && p.hasPort(port) })
}

// hasPort looks at sidecars too, which stand among the init containers.
func (p pod) hasPort(name string) bool {
	return slices.ContainsFunc(slices.Concat(p.spec.InitContainers, p.spec.Containers), func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(port corev1.ContainerPort) bool { return port.Name == name })
	})
}

func (r *release) service(o object, x *corev1.Service) {
	selector := metav1.LabelSelector{MatchLabels: x.Spec.Selector}
	r.selects(o, &selector)
	for _, port := range x.Spec.Ports {
		if name := port.TargetPort.StrVal; name == "" || !r.somePodHasPort(selector, name) {
			r.say(o, "port %s leads to %q, which its pods do not have", port.Name, port.TargetPort.String())
		}
	}
}

// backend checks a way from outside: the Service is there and has the port.
func (r *release) backend(o object, service, port string, number int32) {
	x, ok := r.find("Service", service).Object.(*corev1.Service)
	if !ok {
		r.say(o, "no Service %q", service)
		return
	}
	if !slices.ContainsFunc(x.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == port || p.Port == number }) {
		r.say(o, "Service %s has no port %s%d", service, port, number)
	}
}

func (r *release) routeBackend(o object, b gatewayv1.BackendObjectReference) {
	if b.Port == nil {
		r.say(o, "backend %s: no port", b.Name)
		return
	}
	r.backend(o, string(b.Name), "", *b.Port)
}

func (r *release) serviceMonitor(o object, x *monitoringv1.ServiceMonitor) {
	found := false
	for _, s := range r.objects {
		service, ok := s.Object.(*corev1.Service)
		if !ok || !matches(&x.Spec.Selector, service.Labels) {
			continue
		}
		found = true
		for _, e := range x.Spec.Endpoints {
			r.backend(o, s.name, e.Port, 0)
		}
		if service.Labels[x.Spec.JobLabel] != "memsvc" {
			r.say(o, "the job would be %q; dashboards and rules ask for memsvc", service.Labels[x.Spec.JobLabel])
		}
	}
	if !found {
		r.say(o, "selects no Service")
	}
}
