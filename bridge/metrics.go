package bridge

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"parlour/bridge/ask"
)

// Metrics counts what happens to questions. Its labels are of fixed sets:
// platforms, tiers, runners of the manifests, kinds and causes; never an id, so
// the number of series does not grow with the people who ask. It counts what
// this process does: a question of a terminal that died is accepted and ended
// elsewhere, and not counted. A nil *Metrics counts nothing.
type Metrics struct {
	accepted *prometheus.CounterVec
	ended    *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	tokens   *prometheus.CounterVec
	running  prometheus.Gauge
	failed   prometheus.Counter
	lost     *prometheus.CounterVec
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{
		accepted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parlour_questions_accepted_total", Help: "Questions that passed the gate or were refused by it.",
		}, []string{"platform", "tier"}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parlour_questions_ended_total", Help: "Questions by how they ended.",
		}, []string{"platform", "tier", "runner", "outcome", "cause"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "parlour_run_seconds", Help: "Time of the last run of a question.",
			Buckets: []float64{0.05, 0.2, 1, 5, 15, 30, 60, 120, 240},
		}, []string{"runner"}),
		tokens: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parlour_model_tokens_total", Help: "Tokens of the model, all kinds together.",
		}, []string{"tier", "runner"}),
		running: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "parlour_runs", Help: "Questions that are being worked on.",
		}),
		failed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "parlour_deliveries_failed_total", Help: "Deliveries that failed; their outcomes stay stored and are tried again.",
		}),
		lost: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "parlour_outcomes_undeliverable_total", Help: "Outcomes that a platform refused for good; nobody was told.",
		}, []string{"platform"}),
	}
	var errs []error
	for _, c := range []prometheus.Collector{m.accepted, m.ended, m.seconds, m.tokens, m.running, m.failed, m.lost} {
		errs = append(errs, r.Register(c))
	}
	return m, errors.Join(errs...)
}

func (m *Metrics) questionAccepted(job ask.Job) {
	if m != nil {
		m.accepted.WithLabelValues(string(job.Identity.Platform), job.Decision.Tier.String()).Inc()
	}
}

func (m *Metrics) runStarted() {
	if m != nil {
		m.running.Inc()
	}
}

func (m *Metrics) runStopped() {
	if m != nil {
		m.running.Dec()
	}
}

func (m *Metrics) questionEnded(job ask.Job, ended ask.Ended) {
	if m == nil {
		return
	}
	r, runner := ended.Receipt, ended.Receipt.Choice.Runner
	if runner == "" {
		runner = "none"
	}
	m.ended.WithLabelValues(string(job.Identity.Platform), r.Tier.String(), runner, string(ended.Outcome.Kind), string(ended.Outcome.Cause)).Inc()
	if r.Took > 0 {
		m.seconds.WithLabelValues(runner).Observe(r.Took.Seconds())
	}
	if r.Tokens > 0 {
		m.tokens.WithLabelValues(r.Tier.String(), runner).Add(float64(r.Tokens))
	}
}

func (m *Metrics) deliveryFailed() {
	if m != nil {
		m.failed.Inc()
	}
}

func (m *Metrics) outcomeLost(job ask.Job) {
	if m != nil {
		m.lost.WithLabelValues(string(job.Identity.Platform)).Inc()
	}
}
