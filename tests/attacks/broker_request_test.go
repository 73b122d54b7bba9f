package attacks_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"parlour/runner/broker"
	"parlour/runner/probe/mock"
)

// refusedParts are additions to a request of which none may leave: things that
// the provider would fetch, look up, run or store.
func refusedParts(p broker.Protocol) map[string]string {
	if p == broker.Anthropic {
		block := func(b string) string {
			return `{"model":"x","max_tokens":9,"messages":[{"role":"user","content":[` + b + `]}]}`
		}
		return map[string]string{
			"image by url":      block(`{"type":"image","source":{"type":"url","url":"http://169.254.169.254/"}}`),
			"image of a url":    block(`{"type":"image","source":{"type":"url","media_type":"image/png","data":"YQ=="}}`),
			"image by file":     block(`{"type":"image","source":{"type":"file","file_id":"file_1"}}`),
			"document by url":   block(`{"type":"document","source":{"type":"url","url":"https://x"}}`),
			"document by text":  block(`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"x"}}`),
			"nested url":        block(`{"type":"tool_result","tool_use_id":"a","content":[{"type":"image","source":{"type":"url","url":"https://x"}}]}`),
			"url beside base64": block(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"YQ==","url":"https://x"}}`),
			"not base64":        block(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"https://x"}}`),
			"odd media type":    block(`{"type":"image","source":{"type":"base64","media_type":"text/html","data":"YQ=="}}`),
			"container upload":  block(`{"type":"container_upload","file_id":"file_1"}`),
			"search result":     block(`{"type":"search_result","source":"https://x","title":"t","content":[]}`),
			"unknown block":     block(`{"type":"something_new"}`),
			"block of no type":  block(`{"text":"x"}`),
			"field in a block":  block(`{"type":"text","text":"x","citations_config":{}}`),
			"mcp servers":       question(p, `,"mcp_servers":[{"type":"url","url":"https://x","name":"x"}]`),
			"container":         question(p, `,"container":"c_1"`),
			"unknown field":     question(p, `,"something_new":1`),
			"betas in the body": question(p, `,"betas":["files-api-2025-04-14"]`),
			"field in capitals": question(p, `,"MCP_SERVERS":[]`),
			"field twice":       question(p, `,"stream":false`),
			"role":              `{"model":"x","max_tokens":9,"messages":[{"role":"developer","content":"x"}]}`,
			"call of no tool":   `{"model":"x","max_tokens":9,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"Bash","input":{}}]}]}`,
			"server tool's use": `{"model":"x","max_tokens":9,"messages":[{"role":"assistant","content":[{"type":"server_tool_use","id":"a","name":"Read","input":{}}]}]}`,
			"schema points out": question(p, `,"tools":[{"name":"Read","input_schema":{"type":"object","properties":{"a":{"$ref":"https://x/y"}}}}]`),
			"forced call":       question(p, `,"tool_choice":{"type":"tool","name":"Bash"}`),
			"tokens below zero": strings.Replace(question(p, ""), "100000", "-1", 1),
			"tokens as text":    strings.Replace(question(p, ""), "100000", `"9"`, 1),
			"tokens of a part":  strings.Replace(question(p, ""), "100000", "0.5", 1),
			"no messages":       `{"model":"x","max_tokens":9,"messages":[]}`,
			"no object":         `[]`,
		}
	}
	item := func(i string) string { return `{"model":"x","input":[` + i + `]}` }
	part := func(c string) string { return item(`{"role":"user","content":[` + c + `]}`) }
	return map[string]string{
		"image by url":       part(`{"type":"input_image","image_url":"http://169.254.169.254/"}`),
		"image by file":      part(`{"type":"input_image","file_id":"file_1"}`),
		"svg":                part(`{"type":"input_image","image_url":"data:image/svg+xml;base64,YQ=="}`),
		"data url with more": part(`{"type":"input_image","image_url":"data:image/png;base64,YQ==#https://x"}`),
		"file by url":        part(`{"type":"input_file","file_url":"https://x"}`),
		"file by id":         part(`{"type":"input_file","file_id":"file_1"}`),
		"file inline":        part(`{"type":"input_file","filename":"x","file_data":"data:application/pdf;base64,YQ=="}`),
		"unknown part":       part(`{"type":"something_new"}`),
		"nested image":       item(`{"type":"function_call_output","call_id":"a","output":[{"type":"input_image","image_url":"https://x"}]}`),
		"item reference":     item(`{"type":"item_reference","id":"msg_1"}`),
		"unknown item":       item(`{"type":"something_new"}`),
		"web search call":    item(`{"type":"web_search_call","id":"ws_1","status":"completed"}`),
		"mcp call":           item(`{"type":"mcp_call","name":"Read"}`),
		"compaction":         item(`{"type":"compaction","encrypted_content":"x"}`),
		"call of no tool":    item(`{"type":"function_call","call_id":"a","name":"Bash","arguments":"{}"}`),
		"call in namespace":  item(`{"type":"function_call","call_id":"a","namespace":"x","name":"Read","arguments":"{}"}`),
		"previous response":  question(p, `,"previous_response_id":"resp_1"`),
		"conversation":       question(p, `,"conversation":"conv_1"`),
		"stored prompt":      question(p, `,"prompt":{"id":"pmpt_1"}`),
		"background":         question(p, `,"background":true`),
		"include results":    question(p, `,"include":["file_search_call.results"]`),
		"output format":      question(p, `,"text":{"format":{"type":"json_schema","name":"x","schema":{}}}`),
		"unknown field":      question(p, `,"something_new":1`),
		"field in capitals":  question(p, `,"CONVERSATION":"c"`),
		"field twice":        question(p, `,"stream":false`),
		"forced call":        question(p, `,"tool_choice":{"type":"mcp","server_label":"x"}`),
		"schema points out":  question(p, `,"tools":[{"type":"function","name":"Read","parameters":{"$ref":"https://x/y"}}]`),
		"only tools":         item(`{"type":"additional_tools","tools":[]}`),
		"no object":          `[]`,
	}
}

// TestT4OnlyTheAllowListLeaves: what the provider would fetch, look up, run or
// store is refused, and so is everything unknown, with a line in the receipt.
func TestT4OnlyTheAllowListLeaves(t *testing.T) {
	forBoth(t, func(t *testing.T, p broker.Protocol) {
		for name, body := range refusedParts(p) {
			gw := newGateway(t, p, grantOf(), mock.New())
			require.True(t, json.Valid([]byte(body)), name)
			got := gw.post(path(p), body)
			require.Equal(t, http.StatusBadRequest, got.status, "%s: %s", name, got.body)
			require.Contains(t, got.body, "refused")
			require.Empty(t, gw.model.Requests(), name)
			result := gw.result()
			require.NotEmpty(t, result.Receipt.Refused, name)
			require.Zero(t, result.Requests, name)
			require.Zero(t, result.Usage.Total(), name)
			for _, secretPart := range []string{"169.254", "https://", "file_1", "resp_1"} {
				require.NotContains(t, result.Receipt.String(), secretPart, name)
			}
		}
	})
}

// TestT4HiddenJSONIsRefused: bytes that two readers could read differently.
func TestT4HiddenJSONIsRefused(t *testing.T) {
	forBoth(t, func(t *testing.T, p broker.Protocol) {
		gw := newGateway(t, p, grantOf(), mock.New())
		good := question(p, "")
		for _, body := range []string{
			"", " ", good + good, good + "x", good[:len(good)-1], "\ufeff" + good, "\x00" + good, strings.Replace(good, `"q"`, "\"\xff\"", 1),
			strings.Replace(good, `"model"`, `"model":"y","model"`, 1), strings.Replace(good, `"model"`, `"model":"y","\u006dodel"`, 1),
			`{"a":` + strings.Repeat("[", 9999) + strings.Repeat("]", 9999) + `}`, strings.Replace(good, `"model"`, `"x":1e999,"model"`, 1),
			strings.Replace(good, `{`, `{/**/`, 1), strings.Replace(good, `"q"`, `'q'`, 1),
		} {
			require.Equal(t, http.StatusBadRequest, gw.post(path(p), body).status, "%.80q", body)
		}
		for _, media := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json, text/plain"} {
			got := gw.post(path(p), good, func(r *http.Request) { r.Header.Set("Content-Type", media) })
			require.Equal(t, http.StatusUnsupportedMediaType, got.status, media)
		}
		require.Empty(t, gw.model.Requests())
	})
}

// TestT19CompressedRequestsAreRefused: the filters read plain bytes only.
func TestT19CompressedRequestsAreRefused(t *testing.T) {
	forBoth(t, func(t *testing.T, p broker.Protocol) {
		gw := newGateway(t, p, grantOf(), mock.New())
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, err := z.Write([]byte(question(p, "")))
		require.NoError(t, err)
		require.NoError(t, z.Close())
		for _, coding := range []string{"gzip", "zstd", "br", "deflate", "x-gzip", "identity", "gzip, identity"} {
			got := gw.post(path(p), packed.String(), func(r *http.Request) { r.Header.Set("Content-Encoding", coding) })
			require.Equal(t, http.StatusUnsupportedMediaType, got.status, coding)
		}
		require.Equal(t, http.StatusBadRequest, gw.post(path(p), packed.String()).status, "and without saying so")
		require.Empty(t, gw.model.Requests())
		require.Equal(t, http.StatusOK, gw.post(path(p), question(p, ""), func(r *http.Request) { r.Header.Set("Accept-Encoding", "br, zstd") }).status)
		require.Equal(t, []string{"identity"}, gw.model.Requests()[0].Header["Accept-Encoding"])
	})
}

// TestT26ModelAndTokensAreTheGrants: whatever the CLI asks for.
func TestT26ModelAndTokensAreTheGrants(t *testing.T) {
	forBoth(t, func(t *testing.T, p broker.Protocol) {
		gw := newGateway(t, p, grantOf(), mock.New())
		extra := `,"service_tier":"priority"`
		if p == broker.Anthropic {
			extra += `,"speed":"fast","thinking":{"type":"enabled","budget_tokens":90000},"output_config":{"effort":"max"},"system":[]`
		} else {
			extra += `,"max_output_tokens":128000,"reasoning":{"effort":"xhigh"},"store":true`
		}
		body := strings.Replace(question(p, ""), `"system":"GUARDRAIL",`, "", 1)
		require.Equal(t, http.StatusOK, gw.post(path(p), strings.TrimSuffix(body, "}")+extra+"}").status)
		var sent map[string]any
		require.NoError(t, json.Unmarshal([]byte(gw.upstream()[0]), &sent))
		require.Equal(t, "granted-model", sent["model"])
		for _, name := range []string{"service_tier", "speed", "output_config"} {
			require.NotContains(t, sent, name)
		}
		if p == broker.Anthropic {
			require.EqualValues(t, 4096, sent["max_tokens"])
			require.EqualValues(t, 2048, sent["thinking"].(map[string]any)["budget_tokens"])
			return
		}
		require.EqualValues(t, 4096, sent["max_output_tokens"])
		require.Equal(t, map[string]any{"effort": "medium"}, sent["reasoning"])
		require.Equal(t, false, sent["store"])
	})
}

// TestT28TheProviderSeesTheGrantsIdentity: none of the ids, headers and betas of
// the CLI, and the operator's key in place of the token.
func TestT28TheProviderSeesTheGrantsIdentity(t *testing.T) {
	forBoth(t, func(t *testing.T, p broker.Protocol) {
		gw := newGateway(t, p, grantOf(), mock.New())
		extra := `,"metadata":{"user_id":"CLIENT-device"}`
		if p == broker.OpenAI {
			extra = `,"user":"CLIENT-a","safety_identifier":"CLIENT-b","prompt_cache_key":"CLIENT-c","client_metadata":{"x":"CLIENT-d"},"metadata":{"x":"CLIENT-e"}`
		}
		got := gw.post(path(p), question(p, extra), func(r *http.Request) {
			for _, name := range []string{
				"X-Claude-Code-Session-Id", "Session-Id", "X-Codex-Turn-Metadata", "User-Agent", "Cookie", "X-Forwarded-For", "Via", "Openai-Organization",
				"Openai-Beta", "Anthropic-Dangerous-Direct-Browser-Access", "Originator", "Anthropic-Version", "Accept-Language",
			} {
				r.Header.Set(name, "CLIENT-header")
			}
			r.Header.Set("Anthropic-Beta", "files-api-2025-04-14, CLIENT-beta,interleaved-thinking-2025-05-14,mcp-client-2025-11-20")
		})
		require.Equal(t, http.StatusOK, got.status)
		sent := gw.model.Requests()[0]
		names := []string{"Accept", "Accept-Encoding", "Content-Length", "Content-Type", "User-Agent"}
		if p == broker.Anthropic {
			names = append(names, "Anthropic-Beta", "Anthropic-Version", "X-Api-Key")
			require.Equal(t, []string{"interleaved-thinking-2025-05-14"}, sent.Header["Anthropic-Beta"])
			require.Contains(t, string(sent.Body), `"metadata":{"user_id":"hash-of-asker"}`)
			require.Equal(t, "/v1/messages", sent.Target)
		} else {
			names = append(names, "Authorization")
			require.Contains(t, string(sent.Body), `"safety_identifier":"hash-of-asker","prompt_cache_key":"tier-guest"`)
			require.Equal(t, "/v1/responses", sent.Target)
		}
		for name, values := range sent.Header {
			require.Contains(t, names, name)
			require.NotContains(t, strings.Join(values, " "), "CLIENT")
			require.NotContains(t, strings.Join(values, " "), gw.session.Token().Reveal())
		}
		require.Equal(t, operatorKey, strings.TrimPrefix(sent.Header.Get("X-Api-Key")+sent.Header.Get("Authorization"), "Bearer "))
		require.NotContains(t, string(sent.Body), "CLIENT")
	})
}

// TestT25TheGuardrailKeepsItsRole: the rebuilt request has the policy text where
// the CLI put it, above the question, and the question below.
func TestT25TheGuardrailKeepsItsRole(t *testing.T) {
	gw := newGateway(t, broker.Anthropic, grantOf(), mock.New())
	require.Equal(t, http.StatusOK, gw.post(path(broker.Anthropic), question(broker.Anthropic, "")).status)
	require.Contains(t, gw.upstream()[0], `"system":[{"type":"text","text":"GUARDRAIL"}],"messages":[{"role":"user","content":[{"type":"text","text":"q"}]}]`)
	// A system message in the middle has less authority, and the result of a
	// call follows the call.
	got := gw.post(path(broker.Anthropic), `{"model":"x","max_tokens":9,"messages":[{"role":"user","content":"q"},{"role":"system","content":"S1"},`+
		`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"Read","input":{}}]},{"role":"system","content":[{"type":"text","text":"S2"}]},`+
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"r"}]}]}`)
	require.Equal(t, http.StatusOK, got.status)
	require.Contains(t, gw.upstream()[1], `"messages":[{"role":"user","content":[{"type":"text","text":"q"},{"type":"text","text":"S1"}]},`+
		`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"Read","input":{}}]},`+
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"r"}]},{"type":"text","text":"S2"}]}]`)

	gw = newGateway(t, broker.OpenAI, grantOf(), mock.New())
	require.Equal(t, http.StatusOK, gw.post(path(broker.OpenAI), question(broker.OpenAI, "")).status)
	require.Contains(t, gw.upstream()[0], `"input":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"GUARDRAIL"}]},`+
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"q"}]}]`)
}

// TestT18ToolsOutsideTheSetAreNotOffered: by their names, whatever holds them,
// and none that the provider runs, whatever its name.
func TestT18ToolsOutsideTheSetAreNotOffered(t *testing.T) {
	tools := `,"tools":[{"type":"web_search_20250305","name":"Read","input_schema":{}},{"name":"Read","input_schema":{"type":"object"}},{"name":"Bash","input_schema":{}},` +
		`{"type":"computer_20250124","name":"computer"},{"type":"mcp_toolset","mcp_server_name":"x"},{"name":"read","input_schema":{}},{"name":"Read","input_schema":{}}],` +
		`"tool_choice":{"type":"auto"}`
	gw := newGateway(t, broker.Anthropic, grantOf(), mock.New())
	require.Equal(t, http.StatusOK, gw.post(path(broker.Anthropic), question(broker.Anthropic, tools)).status)
	require.Contains(t, gw.upstream()[0], `"tools":[{"name":"Read","input_schema":{"type":"object"}}],"tool_choice":{"type":"auto"}`)
	require.Equal(t, []broker.Count{{Name: "Read", Times: 2}, {Name: "Bash", Times: 1}, {Name: "computer", Times: 1}, {Name: "mcp_toolset", Times: 1}, {Name: "read", Times: 1}},
		gw.result().Receipt.Removed)

	tools = `,"tools":[{"type":"shell","name":"Read"},{"type":"function","name":"Read","parameters":{"type":"object"}},{"type":"custom","name":"exec"},{"type":"web_search"},{"type":"mcp","server_url":"https://x"},` +
		`{"type":"namespace","name":"collaboration","tools":[{"type":"function","name":"Read"}]},{"type":"local_shell"}],"tool_choice":"auto"`
	body := strings.Replace(question(broker.OpenAI, tools), `"input":[`, `"input":[{"type":"additional_tools","role":"developer","tools":[`+
		`{"type":"namespace","name":"functions","tools":[{"type":"custom","name":"exec"},{"type":"function","name":"Read"}]},{"type":"function","name":"Read"}]},`, 1)
	gw = newGateway(t, broker.OpenAI, grantOf(), mock.New())
	require.Equal(t, http.StatusOK, gw.post(path(broker.OpenAI), body).status)
	sent := gw.upstream()[0]
	require.Contains(t, sent, `"tools":[{"type":"function","name":"Read","parameters":{"type":"object"}}],"tool_choice":"auto"`)
	require.NotContains(t, sent, "additional_tools")
	require.NotContains(t, sent, "exec")
	require.Len(t, gw.result().Receipt.Removed, 8)
	require.Contains(t, gw.session.Result().Receipt.Removed, broker.Count{Name: "Read", Times: 2})

	none := grantOf()
	none.Tools = nil
	gw = newGateway(t, broker.OpenAI, none, mock.New())
	require.Equal(t, http.StatusOK, gw.post(path(broker.OpenAI), body).status)
	require.NotContains(t, gw.upstream()[0], "tool")
}
