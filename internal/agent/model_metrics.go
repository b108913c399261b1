package agent

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/memsvc/memsvc/internal/lifecycle/model/budget"
)

// modelCollector tells in metrics what models cost, of all processes of this state
// directory: hooks end long before anybody asks.
type modelCollector struct {
	counter budget.Counter
	perDay  func() int // 0 = no model

	calls, tokens, today, daily *prometheus.Desc
}

func newModelCollector(counter budget.Counter, perDay func() int) *modelCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("memsync_"+name, help, labels, nil)
	}
	return &modelCollector{
		counter: counter, perDay: perDay,
		calls:  desc("model_calls_total", "Calls of the language model: done, failed, or refused since the day's tokens were used up.", "result"),
		tokens: desc("model_tokens_total", "Tokens of the language model: input, output, and cached, which are part of the input.", "kind"),
		today:  desc("model_tokens_today", "Tokens used since midnight, UTC."),
		daily:  desc("model_daily_tokens", "Tokens that may be used in a day; 0 without a model."),
	}
}

// Describe implements prometheus.Collector.
func (c *modelCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.calls, c.tokens, c.today, c.daily} {
		ch <- d
	}
}

// Collect implements prometheus.Collector. A count that cannot be read is not told;
// status says why.
func (c *modelCollector) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(c.daily, prometheus.GaugeValue, float64(c.perDay()))
	n, err := c.counter.Read()
	if err != nil {
		return
	}
	ch <- prometheus.MustNewConstMetric(c.today, prometheus.GaugeValue, float64(n.Today.Tokens()))
	for result, v := range map[string]int{"done": n.Total.Calls - n.Total.Failed, "failed": n.Total.Failed, "refused": n.Total.Spent} {
		ch <- prometheus.MustNewConstMetric(c.calls, prometheus.CounterValue, float64(v), result)
	}
	for kind, v := range map[string]int{"input": n.Total.Input, "output": n.Total.Output, "cached": n.Total.Cached} {
		ch <- prometheus.MustNewConstMetric(c.tokens, prometheus.CounterValue, float64(v), kind)
	}
}
