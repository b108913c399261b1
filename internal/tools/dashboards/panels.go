package main

import (
	"fmt"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// A dashboard is 24 columns wide.
const (
	statWidth, statHeight   = 4, 4
	graphWidth, graphHeight = 8, 8
)

// source is the data source that the person picks.
func source() common.DataSourceRef {
	return common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("${datasource}")}
}

// query is one expression and how its series are called.
type query struct{ expr, legend string }

func q(legend, expr string, args ...any) query { return query{fmt.Sprintf(expr, args...), legend} }

// level is a colour from a value on; the first one of several begins below everything.
type level struct {
	from  float64
	color string
}

// okUntil is green, yellow from warn on, red from bad on. Where both are one, there is
// no yellow.
func okUntil(warn, bad float64) []level {
	return []level{{color: "green"}, {from: warn, color: "yellow"}, {from: bad, color: "red"}}
}

// okFrom is red, yellow from warn on, green from good on.
func okFrom(warn, good float64) []level {
	return []level{{color: "red"}, {from: warn, color: "yellow"}, {from: good, color: "green"}}
}

func thresholds(levels []level) *dashboard.ThresholdsConfigBuilder {
	if len(levels) == 0 {
		levels = []level{{color: "green"}}
	}
	var steps []dashboard.Threshold
	for i, l := range levels {
		switch {
		case i == 0:
			steps = append(steps, dashboard.Threshold{Color: l.color}) // no value: from the beginning
		case i+1 < len(levels) && levels[i+1].from == l.from:
		default:
			steps = append(steps, dashboard.Threshold{Value: &l.from, Color: l.color})
		}
	}
	return dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(steps)
}

// big is one number: how things are now.
func big(title, description, unit string, levels []level, qu query) *stat.PanelBuilder {
	return stat.NewPanelBuilder().Title(title).Description(description).Datasource(source()).
		Unit(unit).Thresholds(thresholds(levels)).NoValue("–").
		Orientation(common.VizOrientationAuto).ColorMode(common.BigValueColorModeBackground).GraphMode(common.BigValueGraphModeArea).
		ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"lastNotNull"})).
		Span(statWidth).Height(statHeight).
		WithTarget(prometheus.NewDataqueryBuilder().Expr(qu.expr).LegendFormat(qu.legend).Datasource(source()).Range().RefId("A"))
}

// graph is how something went.
func graph(title, description, unit string, levels []level, qs ...query) *timeseries.PanelBuilder {
	p := timeseries.NewPanelBuilder().Title(title).Description(description).Datasource(source()).
		Unit(unit).Min(0).LineWidth(1).FillOpacity(8).ShowPoints(common.VisibilityModeNever).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom).Calcs([]string{})).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending)).
		Span(graphWidth).Height(graphHeight)
	if len(levels) > 0 {
		p.Thresholds(thresholds(levels)).
			ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(common.GraphThresholdsStyleModeDashed))
	}
	for i, qu := range qs {
		p.WithTarget(prometheus.NewDataqueryBuilder().Expr(qu.expr).LegendFormat(qu.legend).Datasource(source()).
			Range().RefId(string(rune('A' + i))))
	}
	return p
}

// list is a table of what is now; the named labels are its columns, then the value.
func list(title, description, unit, value string, width uint32, qu query, columns ...string) *table.PanelBuilder {
	order := map[string]any{}
	for i, c := range append(columns, "Value") {
		order[c] = i
	}
	return table.NewPanelBuilder().Title(title).Description(description).Datasource(source()).
		Unit(unit).Span(width).Height(graphHeight).
		Footer(common.NewTableFooterOptionsBuilder().Show(false).Reducer([]string{"sum"})).NoValue("none").
		WithTarget(prometheus.NewDataqueryBuilder().Expr(qu.expr).Datasource(source()).Instant().Format(prometheus.PromQueryFormatTable).RefId("A")).
		WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{
			"excludeByName": map[string]any{"Time": true}, "indexByName": order, "renameByName": map[string]any{"Value": value},
		}})
}

// quantiles are the usual ones of a histogram, over the given selector.
func quantiles(metric, selector string) []query {
	var out []query
	for _, p := range []struct {
		name string
		of   float64
	}{{"median", .5}, {"95 %", .95}, {"99 %", .99}} {
		out = append(out, q(p.name, "histogram_quantile(%v, sum by (le) (rate(%s_bucket{%s}[$__rate_interval])))", p.of, metric, selector))
	}
	return out
}

// choice is a variable that offers a label's values, several at a time or all.
func choice(name, label, from, regex string) *dashboard.QueryVariableBuilder {
	definition := "label_values(" + from + ")"
	v := dashboard.NewQueryVariableBuilder(name).Label(label).Datasource(source()).
		Query(dashboard.StringOrMap{Map: map[string]any{"query": definition, "refId": "PrometheusVariableQueryEditor-VariableQuery", "qryType": 1}}).
		Definition(definition).Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(dashboard.VariableSortAlphabeticalAsc).
		Multi(true).IncludeAll(true).AllValue(".*").
		Current(dashboard.VariableOption{
			Selected: cog.ToPtr(true),
			Text:     dashboard.StringOrArrayOfString{ArrayOfString: []string{"All"}},
			Value:    dashboard.StringOrArrayOfString{ArrayOfString: []string{"$__all"}},
		})
	if regex != "" {
		v.Regex(regex)
	}
	return v
}

// board is an empty dashboard with what all have in common.
func board(uid, title, description string, variables ...*dashboard.QueryVariableBuilder) *dashboard.DashboardBuilder {
	b := dashboard.NewDashboardBuilder(title).Uid(uid).Description(description).
		Tags([]string{"memsvc"}).Time("now-6h", "now").Refresh("30s").Timezone("browser").
		Tooltip(dashboard.DashboardCursorSyncCrosshair).
		Link(dashboard.NewDashboardLinkBuilder("memsvc").Type(dashboard.DashboardLinkTypeDashboards).
			Tags([]string{"memsvc"}).IncludeVars(true).KeepTime(true)).
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus"))
	for _, v := range variables {
		b.WithVariable(v)
	}
	return b
}

func row(title string) *dashboard.RowBuilder { return dashboard.NewRowBuilder(title) }

// The units that the panels use.
const (
	count   = units.Short
	seconds = units.Seconds
	bytes_  = units.BytesIEC
	share   = units.PercentUnit
	perSec  = units.OpsPerSecond
)
