package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	certmanagerv1 "github.com/cert-manager/cert-manager/pkg/apis/certmanager/v1"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/kubernetes/scheme"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
)

// object is one manifest, in the type of its API.
type object struct {
	kind string
	name string
	runtime.Object
}

func (o object) String() string { return o.kind + "/" + o.name }

// decoder returns what knows every kind the chart may use, and refuses fields that a
// kind does not have, or has twice.
func decoder() (runtime.Decoder, error) {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		scheme.AddToScheme, certmanagerv1.AddToScheme, monitoringv1.AddToScheme, gatewayv1.Install,
	} {
		if err := add(known); err != nil {
			return nil, err
		}
	}
	return serializer.NewCodecFactory(known, serializer.EnableStrict).UniversalDeserializer(), nil
}

// decode reads a stream of YAML documents. A finding says what in it is no object of
// any API.
func decode(text []byte) (objects []object, findings []string) {
	strict, err := decoder()
	if err != nil {
		return nil, []string{err.Error()}
	}
	docs := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
	for n := 1; ; n++ {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return objects, findings
		}
		if err != nil {
			return objects, append(findings, fmt.Sprintf("document %d: %v", n, err))
		}
		if blank(doc) {
			continue
		}
		into, kind, err := strict.Decode(doc, nil, nil)
		if err != nil {
			what := fmt.Sprintf("document %d", n)
			if kind != nil {
				what += " (" + kind.Kind + ")"
			}
			findings = append(findings, fmt.Sprintf("%s: %v", what, err))
			continue
		}
		about, err := meta.Accessor(into)
		if err != nil {
			findings = append(findings, fmt.Sprintf("document %d (%s): %v", n, kind.Kind, err))
			continue
		}
		objects = append(objects, object{kind: kind.Kind, name: about.GetName(), Object: into})
	}
}

// blank reports whether a document holds nothing but comments.
func blank(doc []byte) bool {
	for line := range bytes.Lines(doc) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 && line[0] != '#' && !bytes.Equal(line, []byte("---")) {
			return false
		}
	}
	return true
}
