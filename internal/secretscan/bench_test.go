package secretscan_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/zricethezav/gitleaks/v8/detect"

	"github.com/memsvc/memsvc/internal/secretscan"
	"github.com/memsvc/memsvc/internal/secretscan/secretscantest"
)

// sentences are what memories are made of; the guard's keywords occur as often as they do in such texts.
var sentences = []string{
	"The payments service retries a failed capture three times, with jitter, before it parks the order.",
	"Use `make test` before every push; the race detector runs in CI only.",
	"**Why:** a flaky test cost us two days in March, because nobody knew who owned it.",
	"- [Rate limits](reference_rate_limits.md) — who may call what, and how often",
	"Migrations run in one transaction each; a long one must be split, see `internal/hub/store/migrations`.",
	"The API answers 409 with the current version inside, so the caller merges without another trip.",
	"Do not mock the database: tests start a real one on a free port and drop it at the end.",
	"Tokens are checked at the gateway; services behind it trust the header `X-Principal`.",
	"Decided on 2026-03-14: money is stored as integer cents, never as floating point.",
	"The dashboard is at https://grafana.internal/d/payments/overview, the alerts go to #payments-oncall.",
	"When a review asks for a smaller change, split by behaviour, not by file.",
	"Logs are structured; the request id is in `rid`, the tenant in `team`.",
	"| service | owner | port |",
	"| ledger | platform | 7420 |",
	"The release branch is cut on Thursday; after that only fixes with a test go in.",
	"Keys of the cache begin with the tenant, so that one tenant's flood evicts its own entries first.",
	"He prefers short answers with the command to run, and no summary at the end.",
	"Commit 4f2a91c introduced the second index; it halves the time of the nightly report.",
	"Passwords are never logged, and the linter refuses a field of that name in a log call.",
	"```go\nif err := srv.Shutdown(ctx); err != nil {\n\treturn fmt.Errorf(\"shut down: %w\", err)\n}\n```",
	"If the queue is longer than ten thousand, scale the workers first and look for the cause second.",
	"The staging cluster is rebuilt every Sunday, so nothing there is worth keeping.",
	"> Prefer boring technology; the exception needs a reason in the design note.",
	"Feature flags live in `config/flags.yaml` and are removed one release after they are fully on.",
}

// memory returns a distinct, clean memory of about 2 KB.
func memory(n int) []byte {
	r := rand.New(rand.NewPCG(uint64(n), 7))
	var b strings.Builder
	fmt.Fprintf(&b, "---\nname: working note %d\ndescription: how we work on part %d of the payments service\ntype: project\n---\n", n, n)
	for b.Len() < 2000 {
		b.WriteString(sentences[r.IntN(len(sentences))])
		b.WriteByte('\n')
		if r.IntN(4) == 0 {
			b.WriteByte('\n')
		}
	}
	return []byte(b.String())
}

func memories(n int) [][]byte {
	out := make([][]byte, n)
	for i := range out {
		out[i] = memory(i)
	}
	return out
}

// BenchmarkCleanMemory scans 2 KB memories, no two alike in a run of the cache's size: what a commit costs the hub.
func BenchmarkCleanMemory(b *testing.B) {
	texts := memories(2048)
	s := secretscan.New(secretscan.Options{CacheEntries: 1024})
	for _, text := range texts {
		if fs, err := s.Scan("project_note.md", text); err != nil || fs != nil {
			b.Fatalf("not clean: %v, %v", fs, err)
		}
	}
	b.SetBytes(int64(len(texts[0])))
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		if _, err := s.Scan("project_note.md", texts[i%len(texts)]); err != nil {
			b.Fatal(err)
		}
		i++
	}
}

// BenchmarkKnownMemory scans a text whose verdict is cached.
func BenchmarkKnownMemory(b *testing.B) {
	text := memory(1)
	s := secretscan.New(secretscan.Options{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Scan("project_note.md", text); err != nil {
			b.Fatal(err)
		}
	}
}

// markdownCorpus is the text that throughput is compared on: clean memories, and the corpus's secrets and look-alikes,
// each within a memory.
func markdownCorpus() []string {
	var out []string
	for i := range 200 {
		out = append(out, string(memory(i)))
	}
	for i, p := range secretscantest.Secrets() {
		out = append(out, string(memory(1000+i))+"\n"+p.Content)
	}
	for i, h := range secretscantest.Harmless() {
		out = append(out, string(memory(2000+i))+"\n"+h.Content)
	}
	return out
}

func size(texts []string) (n int64) {
	for _, t := range texts {
		n += int64(len(t))
	}
	return n
}

// BenchmarkCorpusGuard and BenchmarkCorpusGitleaks scan the same Markdown; `make bench` compares them.
func BenchmarkCorpusGuard(b *testing.B) {
	texts := markdownCorpus()
	s := secretscan.New(secretscan.Options{CacheEntries: -1})
	if _, err := s.Scan("a.md", nil); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(size(texts))
	for b.Loop() {
		for _, t := range texts {
			if _, err := s.Scan("a.md", []byte(t)); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkCorpusGitleaks is gitleaks's own DetectString on the same texts.
func BenchmarkCorpusGitleaks(b *testing.B) {
	texts := markdownCorpus()
	d, err := detect.NewDetectorDefaultConfig()
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(size(texts))
	for b.Loop() {
		for _, t := range texts {
			d.DetectString(t)
		}
	}
}

// BenchmarkFirstScan is what the first scan of a process costs: rules parsed, automaton built.
func BenchmarkFirstScan(b *testing.B) {
	text := memory(1)
	for b.Loop() {
		if _, err := secretscan.New(secretscan.Options{}).Scan("project_note.md", text); err != nil {
			b.Fatal(err)
		}
	}
}
