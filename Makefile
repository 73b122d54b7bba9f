# Needs Go and make. `race` also needs gcc.

STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME   ?= 60s
TESTFLAGS  ?=
MUTANTS    ?=
# Most tests wait for something, so more of them run at a time than there are cores.
PARALLEL    = -parallel 8
BOT         = $(CURDIR)/bin/bot

.PHONY: check lint test race fuzz mutants bench benchmarks build golden

# Everything that a change must pass.
check: lint test

lint:
	@unformatted=$$(gofmt -l .); [ -z "$$unformatted" ] || { echo "not gofmt'ed:" $$unformatted; exit 1; }
	GOOS=linux GOARCH=amd64 go vet ./...
	GOOS=linux GOARCH=arm64 go vet ./...
	GOOS=darwin GOARCH=arm64 go vet ./...
	go run $(STATICCHECK) ./...

# All tests as whoever you are, then, as root, again as a user who owns nothing.
# Not cached: much of what they test is the machine.
test: build
	@echo "identity: uid $$(id -u)"; failed=0; \
	CGO_ENABLED=0 PARLOUR_TEST_BOT='$(BOT)' go test -count=1 $(PARALLEL) $(TESTFLAGS) ./... || failed=1; \
	tests/identity.sh $(PARALLEL) $(TESTFLAGS) ./... || failed=1; \
	exit $$failed

race: build
	CGO_ENABLED=1 PARLOUR_TEST_BOT='$(BOT)' go test -count=1 -parallel 4 -race -shuffle=on ./...

# Each fuzz target in turn, for FUZZTIME.
fuzz:
	@grep -rEo --include='*_test.go' '^func Fuzz[A-Za-z0-9_]+' . | sort | while IFS=: read -r file func; do \
		name=$${func#func }; echo "$$(dirname $$file) $$name"; \
		CGO_ENABLED=0 go test -run='^$$' -fuzz="^$$name\$$" -fuzztime=$(FUZZTIME) "$$(dirname $$file)" </dev/null || exit 1; \
	done

# Removes one safety line after the other: a test must turn red each time.
# MUTANTS=EXPRESSION tries those whose names match.
mutants:
	go run ./tests/mutants -run '$(MUTANTS)'

# What the sandbox costs, against bars; needs bubblewrap to compare with.
bench: build
	CGO_ENABLED=0 go run ./tests/bench

# The benchmarks of single packages.
benchmarks:
	CGO_ENABLED=0 go test -run='^$$' -bench=. -benchmem ./...

# The static binary. -buildvcs=false and -trimpath: the same source gives the
# same bytes wherever it is built.
build:
	CGO_ENABLED=0 go build -trimpath -buildvcs=false -o bin/bot ./cmd/bot

# Writes the golden files anew; read the difference before you keep it.
golden: build
	grep -rlE --include='*_test.go' 'flag\.Bool\("update"' . | xargs -r -n1 dirname | sort -u | \
		PARLOUR_TEST_BOT='$(BOT)' xargs -r -I{} go test -count=1 {} -update
