// Package contract_test holds the promises that one part makes to the others,
// seen from outside. It uses exported names only.
package contract_test

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMain makes the test binary play the program that its argv[0] names. A
// name works with an empty environment, where a variable would be scrubbed.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case journalRole:
		os.Exit(journalProcess(os.Args[1:]))
	}
	os.Exit(m.Run())
}
