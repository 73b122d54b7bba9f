package sandbox

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// idRange is count ids from first on.
type idRange struct{ first, count uint32 }

func (r idRange) overlaps(o idRange) bool {
	return uint64(r.first) < uint64(o.first)+uint64(o.count) && uint64(o.first) < uint64(r.first)+uint64(r.count)
}

func (r idRange) holds(o idRange) bool {
	return r.first <= o.first && uint64(o.first)+uint64(o.count) <= uint64(r.first)+uint64(r.count)
}

// candidates are the ranges that are tried in order. The high ones are left
// free by the usual allocations of distributions; the low ones are for
// containers whose ids end at 65536.
func candidates() []idRange {
	var all []idRange
	for i := range uint32(16) {
		all = append(all, idRange{1_900_000_000 + i<<16, 1 << 16})
	}
	for first := uint32(58_000); first >= 20_000; first -= 2_000 {
		all = append(all, idRange{first, 2_000})
	}
	return all
}

// chooseRange gives the first candidate that exists in every id map and that
// belongs to nobody. Guarded by ids_test.go.
func chooseRange(taken []idRange, maps ...[]idRange) (idRange, error) {
	for _, c := range candidates() {
		mapped := !slices.ContainsFunc(maps, func(m []idRange) bool {
			return !slices.ContainsFunc(m, func(r idRange) bool { return r.holds(c) })
		})
		if mapped && !slices.ContainsFunc(taken, c.overlaps) {
			return c, nil
		}
	}
	return idRange{}, fmt.Errorf("no range of free user ids for the runs: passwd, subuid and the id map leave none")
}

// accountIDs reads the ids of /etc/passwd or /etc/group.
func accountIDs(text string) []idRange { return idLines(text, ":", 2, -1) }

// delegatedIDs reads the ranges of /etc/subuid or /etc/subgid.
func delegatedIDs(text string) []idRange { return idLines(text, ":", 1, 2) }

// mappedIDs reads the ids that exist at all, from /proc/self/uid_map or gid_map.
func mappedIDs(text string) []idRange { return idLines(text, "", 0, 2) }

// idLines reads a range from two columns of each line; a column of -1 is one
// id. Lines that hold no numbers there are no ranges.
func idLines(text, sep string, first, count int) []idRange {
	var out []idRange
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if sep != "" {
			fields = strings.Split(strings.TrimSpace(line), sep)
		}
		if len(fields) <= max(first, count) {
			continue
		}
		f, err := strconv.ParseUint(fields[first], 10, 32)
		if err != nil {
			continue
		}
		n := uint64(1)
		if count >= 0 {
			if n, err = strconv.ParseUint(fields[count], 10, 32); err != nil {
				continue
			}
		}
		out = append(out, idRange{uint32(f), uint32(n)})
	}
	return out
}
