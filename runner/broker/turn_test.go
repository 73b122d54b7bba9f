package broker

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"
)

// all reads every event of a stream; comments are "".
func all(r io.Reader) (out []string, err error) {
	e := newEvents(r)
	for {
		data, err := e.next()
		if err != nil {
			return out, err
		}
		out = append(out, string(data))
	}
}

func TestEventsAreReadAsTheStandardSays(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"plain":             {"event: a\ndata: 1\n\ndata: 2\n\n", []string{"1", "2"}},
		"carriage returns":  {"data: 1\r\rdata: 2\r\n\r\ndata: 3\n\r\n", []string{"1", "2", "3"}},
		"several lines":     {"data: 1\ndata:2\ndata:  3\n\n", []string{"1\n2\n 3"}},
		"comment":           {": hi\n\n:\n", []string{"", ""}},
		"comment inside":    {"data: 1\n: hi\ndata: 2\n\n", []string{"1\n2"}},
		"other fields":      {"id: 1\nretry: 2\nx\ndata: 3\n\n", []string{"3"}},
		"without data":      {"event: a\n\ndata: 1\n\n", []string{"1"}},
		"byte order mark":   {"\ufeffdata: 1\n\n", []string{"1"}},
		"not ended":         {"data: 1\n\ndata: 2\n", []string{"1"}},
		"data is a prefix":  {"dataX: 1\ndata: 2\n\n", []string{"2"}},
		"empty data counts": {"data\ndata: 1\n\n", []string{"\n1"}},
	} {
		got, err := all(strings.NewReader(c.text))
		require.ErrorIs(t, err, io.EOF, name)
		require.Equal(t, c.want, got, name)
	}
	_, err := all(io.MultiReader(strings.NewReader("data: "), endless{}))
	require.ErrorIs(t, err, errLongEvent)
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte("event: a\ndata: {}\n\n:\n\ndata: 1\r\ndata: 2\r\n\r\n"))
	f.Add([]byte("\ufeffdata\r\r\ndata:\n\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		whole, err := all(bytes.NewReader(data))
		require.ErrorIs(t, err, io.EOF)
		require.LessOrEqual(t, len(strings.Join(whole, "")), len(data))
		byOne, _ := all(iotest.OneByteReader(bytes.NewReader(data)))
		require.Equal(t, whole, byOne, "the cuts between reads must not matter")
		var again bytes.Buffer
		for _, d := range whole {
			for i, line := range strings.Split(d, "\n") {
				if i == 0 && d == "" {
					again.WriteString(":\n")
					break
				}
				again.WriteString("data: " + line + "\n")
			}
			if d != "" {
				again.WriteByte('\n')
			}
		}
		twice, _ := all(&again)
		require.Equal(t, whole, twice)
	})
}

// FuzzAnswer feeds an answer of each protocol, whole and as events, and reads
// what was relayed with another turn: it must be let through as it is, and hold
// no call but of the one granted tool.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		`{"type":"message_start","message":{"id":"m","content":[]}}` + "\n" +
			`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"Read","input":{}}}` + "\n" +
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"a","name":"web_search","input":{}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}` + "\n" +
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":-4}}` + "\n" + `{"type":"message_stop"}`,
		`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"i","call_id":"c","name":"Read","arguments":"{}"}}` + "\n" +
			`{"type":"response.function_call_arguments.delta","output_index":0,"delta":"x"}`,
		`{"type":"response.completed","response":{"id":"r","status":"completed","output":[{"type":"function_call","call_id":"c","name":"Bash"}]}}`,
		`{"type":"response.completed","response":{"id":"r","status":"completed","output":[],"usage":{"input_tokens":1,"output_tokens":2}}}`,
		`{"type":"message","role":"assistant","content":[{"type":"text","text":"x"}],"stop_reason":"end_turn"}`,
		`{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"x","annotations":[{"url":"u"}]}]}]}`,
	} {
		f.Add([]byte(seed))
	}
	g := Grant{Model: "m", Tools: []string{"Read"}}
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, make := range []func(Grant) turn{newAnthropicTurn, newOpenAITurn} {
			first, second := make(g), make(g)
			for line := range bytes.SplitSeq(data, []byte("\n")) {
				relayed, err := first.event(line)
				if err != nil {
					break
				}
				if relayed == nil {
					continue
				}
				again, err := newEvents(bytes.NewReader(relayed)).next()
				require.NoError(t, err)
				twice, err := second.event(again)
				require.NoError(t, err)
				require.Equal(t, string(relayed), string(twice))
			}
			require.Equal(t, second.account().text, first.account().text)
			if relayed, err := make(g).whole(data); err == nil {
				twice, err := make(g).whole(relayed)
				require.NoError(t, err)
				require.Equal(t, string(relayed), string(twice))
			}
		}
	})
}

func TestOnlyTheGrantedToolIsRelayed(t *testing.T) {
	g := Grant{Model: "m", Tools: []string{"Read", "ns.Read"}}
	for _, bad := range []string{
		`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"read","input":{}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"Read ","input":{}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"mcp_tool_use","id":"a","name":"Read","input":{}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"web_search_tool_result","tool_use_id":"a"}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"something_new"}}`,
	} {
		_, err := newAnthropicTurn(g).event([]byte(bad))
		var call *ViolationError
		require.ErrorAs(t, err, &call, bad)
	}
	for _, bad := range []string{
		`{"type":"function_call","call_id":"c","name":"Bash"}`, `{"type":"function_call","call_id":"c","name":"Read","namespace":"x"}`,
		`{"type":"web_search_call"}`, `{"type":"local_shell_call"}`, `{"type":"mcp_call","name":"Read"}`, `{"type":"something_new"}`, `{}`,
	} {
		for _, event := range []string{
			`{"type":"response.output_item.added","output_index":0,"item":` + bad + `}`,
			`{"type":"response.output_item.done","output_index":0,"item":` + bad + `}`,
			`{"type":"response.created","response":{"output":[` + bad + `]}}`,
			`{"type":"response.completed","response":{"output":[` + bad + `]}}`,
		} {
			_, err := newOpenAITurn(g).event([]byte(event))
			var call *ViolationError
			require.ErrorAs(t, err, &call, event)
		}
	}
}

func TestAPieceOfNothingIsRefused(t *testing.T) {
	g := Grant{Model: "m", Tools: []string{"Read"}}
	for _, bad := range []string{
		`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}`,
		`{"type":"content_block_delta","delta":{"type":"text_delta","text":"x"}}`,
		`{"type":"content_block_stop","index":3}`, `{"type":"message_stop"}`, `{"type":"message_start"}`, `[]`, `{"type":1}`, `{"a":1,"a":1}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`,
	} {
		_, err := newAnthropicTurn(g).event([]byte(bad))
		require.True(t, errors.Is(err, errBroken), bad)
	}
	started := newAnthropicTurn(g)
	const start = `{"type":"message_start","message":{"id":"m","content":[]}}`
	_, err := started.event([]byte(start))
	require.NoError(t, err)
	_, err = started.event([]byte(start))
	require.ErrorIs(t, err, errBroken, "a second message")
	for _, bad := range []string{
		`{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{}"}`,
		`{"type":"response.output_text.delta","delta":"x"}`, `{"type":"response.completed"}`, `{"type":"response.output_item.added"}`,
	} {
		_, err := newOpenAITurn(g).event([]byte(bad))
		require.True(t, errors.Is(err, errBroken), bad)
	}
}
