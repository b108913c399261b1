package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
)

// prometheusImage lays out what the rehearsal needs of Prometheus's image: the program,
// static as ours, and the directory that its volume covers.
func prometheusImage(program, root string) (*image, error) {
	i := &image{name: "prometheus", user: "65534:65534", entrypoint: []string{"/bin/prometheus"}}
	if err := i.layout(root, "", ""); err != nil {
		return nil, err
	}
	data := filepath.Join(root, "prometheus")
	return i, errors.Join(copyFile(program, filepath.Join(root, "bin", "prometheus")), os.Mkdir(data, 0o755), os.Chown(data, 65534, 65534))
}

// prometheus plays the service with the same program from its module.
func (s *stage) prometheus(ctx context.Context, service types.ServiceConfig) (string, error) {
	program := filepath.Join(s.work, "prometheus")
	if _, err := os.Stat(program); err != nil {
		return "not played: see -prometheus", nil
	}
	i, err := prometheusImage(program, filepath.Join(s.work, "image", "prometheus"))
	if err != nil {
		return "", err
	}
	c, err := s.container("prometheus", service, i)
	if err != nil {
		return "", err
	}
	if err := c.start(ctx); err != nil {
		return "", err
	}
	s.running = append(s.running, c)
	// The check of the compose file needs the image's wget; what it asks for needs none.
	test := service.HealthCheck.Test
	url := test[len(test)-1]
	err = s.until(ctx, func() error { return ask(ctx, url, nil) })
	return "healthy", err
}

// watched waits until Prometheus has reached every target of its configuration, and
// checks that it has rules.
func (s *stage) watched(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(s.work, "prometheus")); err != nil {
		return nil
	}
	up := 0
	err := s.until(ctx, func() error {
		var answer struct {
			Data struct {
				ActiveTargets []struct{ ScrapeURL, Health, LastError string }
			}
		}
		if err := ask(ctx, "http://127.0.0.1:9090/api/v1/targets", &answer); err != nil {
			return err
		}
		if up = len(answer.Data.ActiveTargets); up != 4 {
			return fmt.Errorf("%d targets, want 4", up)
		}
		for _, t := range answer.Data.ActiveTargets {
			if t.Health != "up" {
				return fmt.Errorf("%s is %s: %s", t.ScrapeURL, t.Health, t.LastError)
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("prometheus: %w", errors.Join(err, s.logs()))
	}
	var rules struct {
		Data struct {
			Groups []struct{ Rules []struct{ Name string } }
		}
	}
	if err := ask(ctx, "http://127.0.0.1:9090/api/v1/rules", &rules); err != nil {
		return err
	}
	n := 0
	for _, g := range rules.Data.Groups {
		n += len(g.Rules)
	}
	if n == 0 {
		return errors.New("prometheus: no rules")
	}
	fmt.Fprintf(s.out, "Prometheus reaches its %d targets and evaluates %d rules\n", up, n)
	return nil
}

// until repeats what may need a while.
func (s *stage) until(ctx context.Context, try func() error) error {
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		err := try()
		if err == nil || time.Now().After(end) || ctx.Err() != nil {
			return err
		}
	}
}

// page is a text as it came.
type page string

// ask gets a page of this machine: as text into a page, as JSON into anything else, and
// nowhere if into is nil.
func ask(ctx context.Context, url string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := (&http.Client{Timeout: patience}).Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return err
	case res.StatusCode != http.StatusOK:
		return fmt.Errorf("%s: status %d: %s", url, res.StatusCode, strings.TrimSpace(string(text)))
	case into == nil:
		return nil
	}
	if p, ok := into.(*page); ok {
		*p = page(text)
		return nil
	}
	return json.Unmarshal(text, into)
}
