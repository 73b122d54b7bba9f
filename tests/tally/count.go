package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"parlour/tests/cases"
)

// event is one line of `go test -json`.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
	Elapsed float64
	Key     string // of an attribute
	Value   string
}

// count is what the runs came to.
type count struct {
	identity       string
	passed, failed int
	perIdentity    map[string]int      // tests that ran, passed or failed
	perPackage     map[string]int      // the same, of the packages still running
	output         map[string][]string // of the tests still running
	failedIn       map[string]bool     // packages of the present identity with a failed test
	skips          []string
	failures       []string
	about          map[string][]string // the public cases of the tests still running
	cases          map[string]bool     // those of tests that passed
}

func newCount() *count {
	return &count{identity: "?", perIdentity: map[string]int{}, perPackage: map[string]int{},
		output: map[string][]string{}, failedIn: map[string]bool{}, about: map[string][]string{}, cases: map[string]bool{}}
}

func (c *count) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", c.passed, c.failed, len(c.skips))
}

func (c *count) read(r io.Reader, w io.Writer) error {
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			c.line(strings.TrimRight(line, "\n"), w)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (c *count) line(line string, w io.Writer) {
	var e event
	if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &e) != nil {
		if name, ok := strings.CutPrefix(line, "identity: "); ok {
			c.identity = name
			clear(c.failedIn)
		}
		fmt.Fprintln(w, line)
		return
	}
	if e.Test == "" {
		c.packageEvent(e, w)
		return
	}
	c.testEvent(e, w)
}

// packageEvent also catches what fails outside any test: a build, a panic, an
// early exit.
func (c *count) packageEvent(e event, w io.Writer) {
	switch e.Action {
	case "build-output":
		fmt.Fprint(w, e.Output)
	case "output":
		c.keep(e)
	case "pass", "fail":
		fmt.Fprintf(w, "%s  %s  %d tests  %.1fs\n", e.Action, e.Package, c.perPackage[e.Package], e.Elapsed)
		if e.Action == "fail" && !c.failedIn[e.Package] {
			c.fail(e, w)
		}
		if e.Action == "fail" {
			c.unfinished(e, w)
		}
		delete(c.perPackage, e.Package)
		delete(c.output, e.Package+" ")
	}
}

// unfinished prints what the tests had said that never ended: the go tool counts
// a panic, and the stacks of a run that took too long, to one of them.
func (c *count) unfinished(e event, w io.Writer) {
	for _, key := range slices.Sorted(maps.Keys(c.output)) {
		if said := c.output[key]; strings.HasPrefix(key, e.Package+" ") && key != e.Package+" " {
			fmt.Fprintf(w, "did not end: %s\n%s", key, strings.Join(said, ""))
			delete(c.output, key)
		}
	}
}

func (c *count) testEvent(e event, w io.Writer) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "output":
		c.keep(e)
		return
	case "attr":
		if e.Key == cases.Attribute {
			c.about[key] = append(c.about[key], e.Value)
		}
		return
	case "pass":
		c.passed++
		c.ran(e)
		for _, id := range c.about[key] {
			c.cases[id] = true
		}
	case "fail":
		c.failedIn[e.Package] = true
		c.fail(e, w)
		c.ran(e)
	case "skip":
		c.skips = append(c.skips, fmt.Sprintf("%s %s: %s", c.identity, key, reason(c.output[key])))
	default:
		return
	}
	delete(c.output, key)
	delete(c.about, key)
}

func (c *count) keep(e event) {
	key := e.Package + " " + e.Test
	c.output[key] = append(c.output[key], e.Output)
}

func (c *count) ran(e event) {
	c.perIdentity[c.identity]++
	c.perPackage[e.Package]++
}

func (c *count) fail(e event, w io.Writer) {
	key := e.Package + " " + e.Test
	c.failed++
	c.failures = append(c.failures, c.identity+" "+strings.TrimSpace(key))
	fmt.Fprintf(w, "FAILED as %s: %s\n%s", c.identity, key, strings.Join(c.output[key], ""))
}

var logPrefix = regexp.MustCompile(`^\s*\S+\.go:[0-9]+: `)

// reason gives what a skipped test said: the first line that it logged.
func reason(output []string) string {
	for _, line := range output {
		if logPrefix.MatchString(line) {
			return strings.TrimSpace(logPrefix.ReplaceAllString(line, ""))
		}
	}
	return "no reason given"
}

// parseAllowed reads `pattern -> reason` lines. A pattern is matched against
// "IDENTITY PACKAGE TEST: REASON".
func parseAllowed(text string) (allowed []*regexp.Regexp, err error) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		pattern, why, ok := strings.Cut(line, " -> ")
		if !ok || strings.TrimSpace(why) == "" {
			return nil, fmt.Errorf("allowed skip without a reason: %q", line)
		}
		re, err := regexp.Compile(strings.TrimSpace(pattern))
		if err != nil {
			return nil, fmt.Errorf("allowed skip: %w", err)
		}
		allowed = append(allowed, re)
	}
	return allowed, nil
}

// missing gives a fault for each of the public cases of which no test passed.
func (c *count) missing(ids []string) (faults []string) {
	for _, id := range ids {
		if !c.cases[id] {
			faults = append(faults, "no test passed about the public case "+id)
		}
	}
	return faults
}

func (c *count) faults(allowed []*regexp.Regexp, identities []string) (faults []string) {
	for _, f := range c.failures {
		faults = append(faults, "failed: "+f)
	}
	for _, s := range c.skips {
		if !slices.ContainsFunc(allowed, func(re *regexp.Regexp) bool { return re.MatchString(s) }) {
			faults = append(faults, "skip not allowed: "+s)
		}
	}
	for _, id := range identities {
		if c.perIdentity[id] == 0 {
			faults = append(faults, "no test ran as "+id)
		}
	}
	return faults
}
