package manifests

import (
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/tiers"
)

// A field that written would not know of could be changed without a word of it.
func TestWrittenKnowsEveryField(t *testing.T) {
	plain := tiers.Rule{
		Tier: tiers.Guest, Platform: tiers.Discord, Workspace: "w", Channels: []string{"a", "b"}, Categories: []string{"a", "b"},
		Users: []string{"a", "b"}, Roles: []string{"a", "b"}, Groups: []string{"a", "b"}, Until: time.Unix(7, 0), Origin: "x:1",
	}
	others := map[string][]any{
		"Tier": {tiers.Team}, "Platform": {tiers.Slack}, "Workspace": {"", "w w"}, "Anyone": {true}, "External": {true},
		"Until": {time.Time{}, time.Unix(8, 0), time.Unix(7, 1)},
	}
	for i := range reflect.TypeFor[tiers.Rule]().NumField() {
		field := reflect.TypeFor[tiers.Rule]().Field(i)
		values, known := others[field.Name]
		if field.Type == reflect.TypeFor[[]string]() {
			values, known = []any{[]string(nil), []string{}, []string{"a"}, []string{"a b"}, []string{"ab"}, []string{"a", "c"}, []string{"a", "b", "b"}}, true
		}
		require.True(t, known || field.Name == "Origin", "a value that differs for %s", field.Name)
		seen := map[string]bool{written(plain): true}
		for _, v := range values {
			rule := plain
			reflect.ValueOf(&rule).Elem().Field(i).Set(reflect.ValueOf(v))
			require.False(t, seen[written(rule)], "%s %v", field.Name, v)
			seen[written(rule)] = true
		}
	}
	moved := plain
	moved.Origin = "x:2"
	require.Equal(t, written(plain), written(moved), "a line that has moved is the same")
}
