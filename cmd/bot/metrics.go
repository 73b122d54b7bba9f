package main

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"parlour/bridge"
	"parlour/runner/probe"
)

// metrics makes the bot's metrics and the handler that shows them. Grants says how
// many hold.
func metrics(grants func() float64) (*bridge.Metrics, *escapes, *reloads, http.Handler, error) {
	registry := prometheus.NewRegistry()
	if err := registry.Register(collectors.NewGoCollector()); err != nil {
		return nil, nil, nil, nil, err
	}
	probed := newEscapes()
	if err := registry.Register(probed.attempts); err != nil {
		return nil, nil, nil, nil, err
	}
	read := newReloads()
	held := prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "parlour_grants", Help: "Grants that hold."}, grants)
	for _, c := range []prometheus.Collector{read.looks, read.waiting, held} {
		if err := registry.Register(c); err != nil {
			return nil, nil, nil, nil, err
		}
	}
	m, err := bridge.NewMetrics(registry)
	return m, probed, read, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), err
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

// reloads show what became of changes of the manifests.
type reloads struct {
	looks   *prometheus.CounterVec
	waiting prometheus.Gauge
}

func newReloads() *reloads {
	r := &reloads{
		looks: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parlour_manifest_reloads_total", Help: "Changes of the tier manifests that were read while the bot runs, by what came of it.",
		}, []string{"result"}),
		waiting: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "parlour_manifest_gains_waiting", Help: "Gains of rights that wait for the operator's consent.",
		}),
	}
	for _, result := range []string{"ok", "failed"} {
		r.looks.WithLabelValues(result)
	}
	return r
}

func (r *reloads) show(failed bool, waiting int) {
	if failed {
		r.looks.WithLabelValues("failed").Inc()
		return
	}
	r.looks.WithLabelValues("ok").Inc()
	r.waiting.Set(float64(waiting))
}
