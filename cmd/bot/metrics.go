package main

import (
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"parlour/bridge"
)

// metrics makes the bot's metrics and the handler that shows them.
func metrics() (*bridge.Metrics, http.Handler, error) {
	registry := prometheus.NewRegistry()
	if err := registry.Register(collectors.NewGoCollector()); err != nil {
		return nil, nil, err
	}
	m, err := bridge.NewMetrics(registry)
	return m, promhttp.HandlerFor(registry, promhttp.HandlerOpts{}), err
}
