package manifests

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/runner/policy"
	"parlour/runner/spec"
)

// fill sets every field to an amount; a list of it holds so many entries.
func fill(v reflect.Value, n int) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), n)
		}
	case reflect.Int, reflect.Int8, reflect.Int64:
		v.SetInt(int64(n))
	case reflect.Bool:
		v.SetBool(n > 1)
	case reflect.String:
		v.SetString("same")
	case reflect.Slice:
		list := reflect.MakeSlice(v.Type(), n, n)
		for i := range n {
			if list.Index(i).Kind() == reflect.String {
				list.Index(i).SetString(string(rune('a' + i)))
			} else {
				list.Index(i).SetInt(int64(i))
			}
		}
		v.Set(list)
	case reflect.Map:
	default:
		panic("a field of a new kind: " + v.Kind().String())
	}
}

// A field that nobody thought of would be a way in which rights grow unseen.
func TestLesserKnowsEveryField(t *testing.T) {
	var less, more Tier
	fill(reflect.ValueOf(&less).Elem(), 1)
	fill(reflect.ValueOf(&more).Elem(), 2)
	less.Models = map[spec.Provider]string{spec.Anthropic: "small"}
	more.Models = map[spec.Provider]string{spec.Anthropic: "small", spec.OpenAI: "small"}
	// More that is required is less right.
	less.Wish.Require, more.Wish.Require = []policy.Clause{policy.Filesystem, policy.NetworkReach}, []policy.Clause{policy.Filesystem}
	less.Tier, more.Tier = 1, 1 // whose policy it is
	require.Equal(t, less, lesser(more, less))
	require.Equal(t, less, lesser(less, more))
	require.True(t, Narrows(more, less))
	require.False(t, Narrows(less, more))
}

func TestLesserOfWhatIsNotLess(t *testing.T) {
	before, now := Tier{Runners: []string{"a", "b"}}, Tier{Runners: []string{"b", "c", "a"}}
	before.Models, now.Models = map[spec.Provider]string{spec.OpenAI: "tried"}, map[spec.Provider]string{spec.OpenAI: "new", spec.Anthropic: "new"}
	before.Wish.Limits.Stall, now.Wish.Limits.Stall = 5, 0
	got := lesser(before, now)
	require.Equal(t, []string{"b", "a"}, got.Runners, "the order is the later one's")
	require.Equal(t, map[spec.Provider]string{spec.OpenAI: "tried"}, got.Models)
	require.EqualValues(t, 5, got.Wish.Limits.Stall, "0 is no limit")
	before.Wish.Require, now.Wish.Require = nil, []policy.Clause{policy.Filesystem}
	require.Empty(t, lesser(before, now).Wish.Require, "none named: all are required")
}
