package policy

import (
	"fmt"
	"strings"
	"time"
)

// Limits bound one run. Sizes are bytes. A zero field permits nothing, so
// Narrow refuses it, but for Stall, ModelRequests and OutputTokens: a runner
// that prints only at its end has no stall limit, and a run without a network
// makes no model requests.
type Limits struct {
	Wall          time.Duration // whole run
	Stall         time.Duration // longest silence; 0: none
	Memory        int64
	Disk          int64 // all scratch folders together
	Files         int   // inodes in each scratch folder
	Processes     int
	OpenFiles     int
	Answer        int64
	ModelRequests int
	OutputTokens  int
}

// LeastMemory is the least that a run can be started with, in bytes.
const LeastMemory = 32 << 20

// Limit is one bound as text and receipts show it: its name, its value with a
// unit, and how well it is enforced.
type Limit struct {
	Name  string
	Value string
	Level Level
}

func (l Limits) validate() error {
	positive := []struct {
		name string
		ok   bool
	}{
		{"wall", l.Wall > 0},
		{"memory", l.Memory > 0},
		{"disk", l.Disk > 0},
		{"files", l.Files > 0},
		{"processes", l.Processes > 0},
		{"open files", l.OpenFiles > 0},
		{"answer", l.Answer > 0},
		{"stall", l.Stall >= 0},
		{"model requests", l.ModelRequests >= 0},
		{"output tokens", l.OutputTokens >= 0},
	}
	// The kernel counts against a run what it is started with, and while it is
	// started it shares the bot's memory: a limit below that would end the bot.
	if l.Memory > 0 && l.Memory < LeastMemory {
		return fmt.Errorf("limit memory is too low: %s, at least %s", Size(l.Memory), Size(LeastMemory))
	}
	for _, p := range positive {
		if !p.ok {
			return fmt.Errorf("limit %s is too low: it permits nothing", p.name)
		}
	}
	return nil
}

// Processor is the processor time of each process, in whole seconds: a run that
// computes on one processor from its start to its end has no more.
func (l Limits) Processor() time.Duration {
	return max(l.Wall.Truncate(time.Second), time.Second)
}

func (l Limits) list(c Capabilities, n Network) []Limit {
	limits := []Limit{{"wall clock", l.Wall.String(), Enforced}}
	if l.Stall > 0 {
		limits = append(limits, Limit{"silence", l.Stall.String(), Enforced})
	}
	limits = append(limits,
		Limit{"answer", Size(l.Answer), Enforced},
		Limit{"memory", Size(l.Memory), c.Memory},
		Limit{"processor time", l.Processor().String(), c.processor()},
		Limit{"scratch space", Size(l.Disk), c.Disk},
		Limit{"processes", fmt.Sprint(l.Processes), c.ProcessCount},
		Limit{"open files", fmt.Sprint(l.OpenFiles), c.OpenFiles},
	)
	if n == ModelOnly {
		limits = append(limits,
			Limit{"model requests", fmt.Sprint(l.ModelRequests), Enforced},
			Limit{"output tokens", fmt.Sprint(l.OutputTokens), Enforced})
	}
	return limits
}

// Size prints bytes with the largest binary unit that loses nothing.
func Size(n int64) string {
	units := []struct {
		name  string
		bytes int64
	}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}
	for _, u := range units {
		if n >= u.bytes && n%u.bytes == 0 {
			return fmt.Sprintf("%d %s", n/u.bytes, u.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}

func list(words []string) string { return strings.Join(words, ", ") }
