package contract_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/bridge/journal"
)

// BenchmarkJournal prints medians of what stands between a message and its run.
func BenchmarkJournal(b *testing.B) {
	for _, waiting := range []int{0, 1000} {
		b.Run(fmt.Sprintf("queued=%d", waiting), func(b *testing.B) {
			ctx := context.Background()
			j := openJournal(b, b.TempDir(), journal.Serve)
			for i := range waiting {
				j.accept(b, jobOf(fmt.Sprint("w", i), fmt.Sprint("crowd", i%100), fmt.Sprint("w", i)))
			}
			var accepts, starts, ends []time.Duration
			for i := 0; b.Loop(); i++ {
				begin := time.Now()
				j.accept(b, jobOf(fmt.Sprint("m", i), fmt.Sprint("p", i), fmt.Sprint("l", i)))
				accepts = append(accepts, time.Since(begin))
				job, err := j.Claim(ctx, 1)
				require.NoError(b, err)
				starts = append(starts, time.Since(begin))
				begin = time.Now()
				j.finish(b, *job)
				ends = append(ends, time.Since(begin))
			}
			b.ReportMetric(median(accepts), "accept-µs")
			b.ReportMetric(median(starts), "accept+claim-µs")
			b.ReportMetric(median(ends), "finish-µs")
		})
	}
}

func median(took []time.Duration) float64 {
	slices.Sort(took)
	return float64(took[len(took)/2].Nanoseconds()) / 1000
}
