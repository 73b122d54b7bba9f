package main

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"parlour/bridge"
	"parlour/runner/probe"
)

// metrics makes the bot's metrics and the handler that shows them.
func metrics() (*bridge.Metrics, *escapes, http.Handler, error) {
	registry := prometheus.NewRegistry()
	if err := registry.Register(collectors.NewGoCollector()); err != nil {
		return nil, nil, nil, err
	}
	probed := newEscapes()
	if err := registry.Register(probed.attempts); err != nil {
		return nil, nil, nil, err
	}
	m, err := bridge.NewMetrics(registry)
	return m, probed, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), err
}

// escapes show what the escape battery found, by rung and verdict.
type escapes struct{ attempts *prometheus.GaugeVec }

func newEscapes() *escapes {
	return &escapes{prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "parlour_escape_attempts", Help: "Attempts of the escape battery on this host, by what came of them.",
	}, []string{"rung", "verdict"})}
}

func (e *escapes) show(r probe.Report) {
	for _, v := range []probe.Verdict{probe.Contained, probe.Escaped, probe.NotMeasured, probe.NotApplicable} {
		e.attempts.WithLabelValues(r.Rung.String(), v.String()).Set(float64(r.Count(v)))
	}
}
