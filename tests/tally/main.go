// Command tally reads the JSON stream of one or more test runs and says in
// short what happened: each package, each failure in full, each skip with its
// reason, and a count. It fails on a failed test, on a skip that the list does
// not allow, on an identity that ran no test, and with -cases on a public case
// about which no test passed. It runs no test itself.
//
// A plain line "identity: NAME" says under which identity the tests after it
// ran; other plain lines are passed through.
package main

import (
	"flag"
	"fmt"
	"os"
	"strings"

	"parlour/tests/cases"
)

func main() {
	skips := flag.String("skips", "", "file of allowed skips, one `pattern -> reason` a line")
	identities := flag.String("identities", "", "comma-separated identities that must have run tests")
	all := flag.Bool("cases", false, "every public case of tests/cases must have had a test that passed")
	flag.Parse()
	if err := run(*skips, *identities, *all); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(skips, identities string, all bool) error {
	text, err := os.ReadFile(skips)
	if err != nil {
		return fmt.Errorf("read the allowed skips: %w", err)
	}
	allowed, err := parseAllowed(string(text))
	if err != nil {
		return err
	}
	count := newCount()
	if err := count.read(os.Stdin, os.Stdout); err != nil {
		return fmt.Errorf("read the test run: %w", err)
	}
	faults := count.faults(allowed, strings.Split(identities, ","))
	if all {
		faults = append(faults, count.missing(cases.IDs())...)
	}
	for _, s := range count.skips {
		fmt.Println("skipped:", s)
	}
	for _, f := range faults {
		fmt.Println("fault:", f)
	}
	fmt.Println(count)
	if len(faults) > 0 {
		return fmt.Errorf("%d faults", len(faults))
	}
	return nil
}
