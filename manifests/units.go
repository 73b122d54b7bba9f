package manifests

import (
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"

	"gopkg.in/yaml.v3"
)

// whole reads a whole number that is at least least.
func (r *reader) whole(i item, least int) (int, bool) {
	right := "a whole number from " + strconv.Itoa(least) + " on"
	if i.null() || i.node.Kind != yaml.ScalarNode || i.node.Style != 0 || !only(i.node.Value, "0123456789") {
		r.unfit(i, right+", without quotes")
		return 0, false
	}
	n, err := strconv.Atoi(i.node.Value)
	if err != nil || n < least || n > math.MaxInt32 {
		r.unfit(i, right)
		return 0, false
	}
	return n, true
}

// duration reads a time with its unit. It is never zero, so that no limit can
// be switched off by a value that looks like one.
func (r *reader) duration(i item) (time.Duration, bool) {
	const right = "a time with its unit and more than zero, such as 45s or 4m"
	if i.null() || i.node.Kind != yaml.ScalarNode {
		r.unfit(i, right)
		return 0, false
	}
	d, err := time.ParseDuration(i.node.Value)
	if err != nil || d <= 0 || !only(i.node.Value, "0123456789.hms") {
		r.unfit(i, right)
		return 0, false
	}
	return d, true
}

// instant reads a moment with its zone, so that it means one thing everywhere.
func (r *reader) instant(i item) (time.Time, bool) {
	const right = "a time with its zone, such as 2030-01-31T18:00:00Z"
	if i.null() || i.node.Kind != yaml.ScalarNode {
		r.unfit(i, right)
		return time.Time{}, false
	}
	at, err := time.Parse(time.RFC3339, i.node.Value)
	if err != nil || at.IsZero() {
		r.unfit(i, right)
		return time.Time{}, false
	}
	return at, true
}

// size reads bytes with a binary unit.
func (r *reader) size(i item) (int64, bool) {
	const right = "a size with its unit, such as 64KiB, 10MiB or 1.5GiB"
	if i.null() || i.node.Kind != yaml.ScalarNode {
		r.unfit(i, right)
		return 0, false
	}
	n, ok := bytesOf(i.node.Value)
	if !ok {
		r.unfit(i, right)
	}
	return n, ok
}

// bytesOf reads a decimal number directly before KiB, MiB or GiB. It must come
// to a whole number of bytes, more than zero.
func bytesOf(s string) (int64, bool) {
	for unit, scale := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30} {
		number, ok := strings.CutSuffix(s, unit)
		if !ok || len(number) > 12 || !only(number, "0123456789.") || strings.Trim(number, ".") != number {
			continue
		}
		value, ok := new(big.Rat).SetString(number)
		if !ok {
			continue
		}
		value.Mul(value, new(big.Rat).SetInt64(scale))
		if value.IsInt() && value.Sign() > 0 && value.Num().IsInt64() {
			return value.Num().Int64(), true
		}
	}
	return 0, false
}

// only says whether s is not empty and made of the given letters.
func only(s, letters string) bool {
	return s != "" && strings.Trim(s, letters) == ""
}
