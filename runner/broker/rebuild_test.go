package broker

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the golden files anew")

// grantFor gives the grant of a recorded request by its file's name.
func grantFor(name string) Grant {
	g := Grant{Model: "granted-model", Requests: 1, OutputTokens: 4096, Asker: "asker", Cache: "tier"}
	switch {
	case strings.Contains(name, "team"):
		g.Tools = []string{"Read", "Grep", "Glob"}
	case strings.Contains(name, "shell"):
		g.Tools = []string{"exec_command"}
	}
	return g
}

func rebuild(d dialect, g Grant, data []byte) (*shape, []byte) {
	root, err := parseJSON(data)
	if err != nil {
		return nil, nil
	}
	s := &shape{grant: g}
	request, _ := d.rebuild(s, root, g.OutputTokens)
	out, err := encode(request)
	if err != nil {
		s.refuse("", err.Error())
	}
	return s, out
}

func dialectOf(t testing.TB, name string) dialect {
	protocol, _, _ := strings.Cut(filepath.Base(name), "-")
	d, err := speech(Protocol(protocol))
	require.NoError(t, err)
	return d
}

// TestRecordedRequestsAreRebuilt shows what becomes of requests that claude
// 2.1.332 and codex 0.171.0 really sent; long texts are cut, ids are zeros.
func TestRecordedRequestsAreRebuilt(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	require.Len(t, files, 8)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		s, out := rebuild(dialectOf(t, file), grantFor(file), data)
		require.Empty(t, s.faults, file)
		var pretty bytes.Buffer
		fmt.Fprintf(&pretty, "removed: %s\ndropped: %s\n", strings.Join(s.removed, " "), strings.Join(s.dropped, ", "))
		require.NoError(t, json.Indent(&pretty, out, "", " "))
		pretty.WriteByte('\n')
		golden := strings.TrimSuffix(file, ".json") + ".golden"
		if *update {
			require.NoError(t, os.WriteFile(golden, pretty.Bytes(), 0o644))
		}
		want, err := os.ReadFile(golden)
		require.NoError(t, err)
		require.Equal(t, string(want), pretty.String(), file)
	}
}

// addRecorded makes the smaller recorded requests of one protocol seeds: the
// fuzzer spends its time on making large ones smaller.
func addRecorded(f *testing.F, protocol Protocol) {
	files, err := filepath.Glob("testdata/" + string(protocol) + "-*.json")
	require.NoError(f, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(f, err)
		var small bytes.Buffer
		require.NoError(f, json.Compact(&small, data))
		if small.Len() < 2<<10 {
			f.Add(small.Bytes())
		}
	}
}

func FuzzAnthropicRequest(f *testing.F) {
	addRecorded(f, Anthropic)
	for _, seed := range []string{
		`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"q"}]}`,
		`{"model":"m","max_tokens":9,"messages":[{"role":"system","content":"a"},{"role":"assistant","content":[]},{"role":"system","content":"b"}]}`,
		`{"model":"m","messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"http://x"}}]}]}`,
		`{"model":"m","thinking":{"type":"enabled"},"tool_choice":{"type":"tool","name":"Read"},"tools":[{"name":"Read","input_schema":{}}],"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[]}]}]}`,
	} {
		f.Add([]byte(seed))
	}
	fuzzRequest(f, anthropicSpeech(), []string{
		"model", "max_tokens", "metadata", "system", "messages", "tools", "tool_choice", "thinking",
		"temperature", "top_p", "top_k", "stop_sequences", "stream",
	})
}

func FuzzOpenAIRequest(f *testing.F) {
	addRecorded(f, OpenAI)
	for _, seed := range []string{
		`{"model":"m","input":"q","store":true,"stream":true}`,
		`{"model":"m","input":[{"role":"user","content":[{"type":"input_image","image_url":"https://x"}]}]}`,
		`{"model":"m","input":[{"type":"additional_tools","tools":[{"type":"namespace","name":"a","tools":[{"type":"namespace","tools":[{"type":"namespace","tools":[{"name":"x"}]}]}]}]},{"role":"user","content":"q"}]}`,
		`{"model":"m","input":[{"type":"function_call","call_id":"a","name":"Read","arguments":""},{"type":"function_call_output","call_id":"a","output":[]}]}`,
	} {
		f.Add([]byte(seed))
	}
	fuzzRequest(f, openaiSpeech(), []string{
		"model", "instructions", "input", "tools", "tool_choice", "parallel_tool_calls", "reasoning", "text", "include",
		"max_output_tokens", "store", "safety_identifier", "prompt_cache_key", "stream",
	})
}

// fuzzRequest checks that whatever is let through is valid, holds known fields
// only, stays within the grant, and means the same when it is read again.
func fuzzRequest(f *testing.F, d dialect, fields []string) {
	g := Grant{Model: "granted", Tools: []string{"Read", "exec_command"}, OutputTokens: 4096, Asker: "asker", Cache: "tier"}
	f.Fuzz(func(t *testing.T, data []byte) {
		s, out := rebuild(d, g, data)
		if s == nil || len(s.faults) > 0 {
			return
		}
		root, err := parseJSON(out)
		require.NoError(t, err)
		require.Subset(t, fields, root.names)
		o := (&shape{grant: g}).object(root, "")
		require.Equal(t, "granted", o.text("model"))
		require.LessOrEqual(t, max(o.count("max_tokens"), o.count("max_output_tokens")), 4096)
		require.False(t, o.yes("store"))
		require.Empty(t, forbidden(root, ""))
		again, twice := rebuild(d, g, out)
		require.Empty(t, again.faults)
		require.Empty(t, again.removed)
		require.Equal(t, string(out), string(twice))
	})
}

// forbidden finds what must never leave: sources that the provider would fetch
// or look up, outside of the places that hold a tool's own JSON.
func forbidden(n *node, path string) string {
	for i, item := range n.items {
		at := path
		if n.kind == kindObject {
			name := n.names[i]
			at += "." + name
			switch name {
			case "input_schema", "parameters":
				continue
			case "input":
				if item.kind == kindObject {
					continue // of a tool call
				}
			case "url", "file_id", "file_url", "file_data", "previous_response_id", "conversation", "prompt", "background",
				"container", "mcp_servers", "server_url", "vector_store_ids", "context_management", "client_metadata", "ttl":
				return at
			case "image_url":
				if !inlineImage(item.text) {
					return at
				}
			case "type":
				if strings.Contains(item.text, "url") && item.text != "input_image" || strings.HasPrefix(item.text, "web_") {
					return at
				}
			}
		}
		if found := forbidden(item, at); found != "" {
			return found
		}
	}
	return ""
}

func TestJSONIsReadStrictly(t *testing.T) {
	for name, text := range map[string]string{
		"empty": ``, "two values": `{} {}`, "rest": `{}x`, "twice": `{"a":1,"a":2}`, "twice by escape": `{"a":1,"\u0061":2}`,
		"deep inside twice": `[{"b":[{"c":1,"c":1}]}]`, "comma": `[1,]`, "not UTF-8": "\"\xff\"", "huge number": `1e999`,
		"long number": `1.` + strings.Repeat("0", 64), "deep": strings.Repeat("[", 99) + strings.Repeat("]", 99),
		"many": `[` + strings.Repeat(`0,`, maxNodes) + `0]`, "NaN": `NaN`, "comment": `{}//`, "BOM": "\ufeff{}",
	} {
		_, err := parseJSON([]byte(text))
		require.Error(t, err, name)
	}
	for _, text := range []string{`null`, `{"b":[1,-2.5e3,"<&>\u2028",true,null],"a":{}}`, `"\ud800"`} {
		n, err := parseJSON([]byte(text))
		require.NoError(t, err)
		again, err := parseJSON(n.append(nil))
		require.NoError(t, err)
		require.Equal(t, n, again)
	}
}

// TestNothingUnknownGetsThrough puts an unknown field into every object of the
// recorded requests, and another type into every typed one: it is refused, or it
// stood in a part that is left out as a whole.
func TestNothingUnknownGetsThrough(t *testing.T) {
	const surprise = "surprise_4711"
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	tried, refused := 0, 0
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		root, err := parseJSON(data)
		require.NoError(t, err)
		check := func(where string) {
			tried++
			s, out := rebuild(dialectOf(t, file), grantFor(file), root.append(nil))
			if len(s.faults) > 0 {
				refused++
				return
			}
			require.NotContains(t, string(out), surprise, "%s: %s", file, where)
		}
		everyObject(root, "", func(n *node, path string) {
			n.names, n.items = append(n.names, surprise), append(n.items, &node{kind: kindText, text: "x"})
			check(path)
			n.names, n.items = n.names[:len(n.names)-1], n.items[:len(n.items)-1]
			for i, name := range n.names {
				if name == "type" || name == "role" {
					was := n.items[i]
					n.items[i] = &node{kind: kindText, text: surprise}
					check(path + "." + name)
					n.items[i] = was
				}
			}
		})
	}
	require.Greater(t, tried, 300)
	require.Greater(t, refused, 100)
}

// everyObject visits the objects of a request that have a meaning to us.
func everyObject(n *node, path string, visit func(*node, string)) {
	if n.kind == kindObject {
		visit(n, path)
	}
	for i, item := range n.items {
		at := path
		if n.kind == kindObject {
			at += "." + n.names[i]
			if name := n.names[i]; name == "input_schema" || name == "parameters" || name == "input" && item.kind == kindObject {
				continue
			}
		}
		everyObject(item, at, visit)
	}
}
