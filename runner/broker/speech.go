package broker

import (
	"net/http"
	"slices"
)

// route is what is done with a request. The zero route is nothing.
type route int

const (
	noRoute     route = iota
	modelRoute        // rebuilt and forwarded
	aliveRoute        // answered here: somebody listens
	modelsRoute       // answered here: the one model
	countRoute        // answered here: a guess of tokens
)

// obj is a JSON object that is written here.
type obj map[string]any

func anthropicSpeech() dialect {
	return dialect{
		base: "https://api.anthropic.com",
		path: "/v1/messages",
		routes: map[string]route{
			"POST /v1/messages":                        modelRoute,
			"POST /v1/messages?beta=true":              modelRoute,
			"POST /v1/messages/count_tokens":           countRoute,
			"POST /v1/messages/count_tokens?beta=true": countRoute,
			"GET /v1/models":                           modelsRoute,
			"HEAD /":                                   aliveRoute,
		},
		rebuild: anthropicRequest,
		turn:    newAnthropicTurn,
		models: func(model string) any {
			return obj{
				"data":     []obj{{"type": "model", "id": model, "display_name": model, "created_at": "2025-01-01T00:00:00Z"}},
				"has_more": false, "first_id": model, "last_id": model,
			}
		},
		counted: func(tokens int) any { return obj{"input_tokens": tokens} },
		fault:   anthropicFault,
		broken: func(text string) []byte {
			return mustFrame("error", anthropicFault(http.StatusBadGateway, text))
		},
	}
}

func anthropicFault(status int, text string) any {
	return obj{"type": "error", "error": obj{"type": faultType(status), "message": text}}
}

func openaiSpeech() dialect {
	return dialect{
		base: "https://api.openai.com",
		path: "/v1/responses",
		routes: map[string]route{
			"POST /v1/responses":              modelRoute,
			"POST /v1/responses/input_tokens": countRoute,
			"GET /v1/models":                  modelsRoute,
			"HEAD /":                          aliveRoute,
		},
		rebuild: openaiRequest,
		turn:    newOpenAITurn,
		models: func(model string) any {
			return obj{"object": "list", "data": []obj{{"object": "model", "id": model, "created": 0, "owned_by": "parlour"}}}
		},
		counted: func(tokens int) any { return obj{"object": "response.input_tokens", "input_tokens": tokens} },
		fault: func(status int, text string) any {
			return obj{"error": obj{"type": faultType(status), "code": faultType(status), "message": text, "param": nil}}
		},
		broken: func(text string) []byte {
			return mustFrame("response.failed", obj{"type": "response.failed", "response": obj{
				"id": "resp", "object": "response", "created_at": 0, "status": "failed", "output": []obj{},
				"error": obj{"code": "invalid_prompt", "message": text}, // the code that no CLI tries again
			}})
		},
	}
}

// mustFrame frames an event that is written here and always encodes.
func mustFrame(name string, v any) []byte {
	data, err := encode(v)
	if err != nil {
		panic("broker: " + err.Error())
	}
	return frame(name, data)
}

// faultType is the protocols' word for a status.
func faultType(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case statusOverloaded:
		return "overloaded_error"
	}
	if status >= http.StatusInternalServerError {
		return "api_error"
	}
	return "invalid_request_error"
}

// statusOverloaded is Anthropic's own status.
const statusOverloaded = 529

// knownReason gives a code of a provider, if it is one that may be repeated.
func knownReason(code string) string {
	known := []string{
		"invalid_request_error", "authentication_error", "permission_error", "not_found_error", "request_too_large",
		"rate_limit_error", "api_error", "overloaded_error", "billing_error", "timeout_error",
		"invalid_api_key", "insufficient_quota", "rate_limit_exceeded", "model_not_found", "context_length_exceeded",
		"server_error", "server_is_overloaded", "invalid_prompt", "unsupported_parameter", "unsupported_value",
		"unknown_parameter", "missing_required_parameter", "billing_hard_limit_reached", "account_deactivated",
	}
	if slices.Contains(known, code) {
		return code
	}
	return ""
}

// betas gives the beta features of Anthropic that change nothing but how an
// answer is thought out.
func betas() []string { return []string{"interleaved-thinking-2025-05-14"} }
