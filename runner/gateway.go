package runner

import (
	"context"
	"errors"
	"fmt"
	"net"

	"parlour/bridge/ask"
	"parlour/runner/broker"
	"parlour/runner/policy"
	"parlour/runner/spec"
)

// protocols gives the broker's protocol for each provider that it can reach.
func protocols() map[spec.Provider]broker.Protocol {
	return map[spec.Provider]broker.Protocol{spec.Anthropic: broker.Anthropic, spec.OpenAI: broker.OpenAI}
}

// gateway opens the model gateway of one run: a token for the program, and the
// key outside. It gives nil where the policy allows no model.
//
// It opens none for a prompt that does not name its asker: the provider would
// hold the operator to account for whatever one person does.
// Guarded by tests/attacks TestT28NobodyAsksAModelUnnamed.
func (r *Runner) gateway(ctx context.Context, plan ask.Plan, prompt ask.Prompt, hooks broker.Hooks) (*broker.Session, error) {
	if plan.Policy.Network() != policy.ModelOnly {
		return nil, nil
	}
	if prompt.Asker == "" {
		return nil, errors.New("open the model gateway: nobody is named as the asker")
	}
	s := r.specs[plan.Choice.Runner]
	grant, err := broker.For(plan.Policy, plan.Choice.Model, s.OnTheWire(plan.Policy.Tools()))
	if err != nil {
		return nil, fmt.Errorf("open the model gateway: %w", err)
	}
	grant.Asker, grant.Cache = prompt.Asker, prompt.Cache
	up := r.cfg.Models[s.Provider]
	up.Protocol = protocols()[s.Provider]
	session, err := broker.Open(ctx, up, grant, hooks)
	if err != nil {
		return nil, fmt.Errorf("open the model gateway: %w", err)
	}
	return session, nil
}

// serve answers the program's requests until the session is closed. The
// listener was made inside the sandbox, and nothing else answers there.
func serve(session *broker.Session, l net.Listener) {
	if session != nil && l != nil {
		go func() { _ = session.Serve(l) }() // it ends with the run, and the result says how
	}
}

// modelCause gives the cause that the gateway saw, if it saw one.
func modelCause(err error) (ask.Cause, bool) {
	var violation *broker.ViolationError
	var limit *broker.LimitError
	var failure *broker.Failure
	switch {
	case errors.As(err, &violation):
		return ask.ToolCall, true
	case errors.As(err, &limit):
		return ask.ModelLimit, true
	case errors.As(err, &failure):
		switch failure.Kind {
		case broker.Unauthorized:
			return ask.ModelDenied, true
		case broker.RateLimited, broker.Overloaded:
			return ask.ModelBusy, true
		}
		return ask.ModelDown, true
	}
	return ask.NoCause, false
}

// seen turns what the gateway saw of a finished run into an error, or nil.
func seen(res broker.Result) error {
	switch {
	case res.Violation != nil:
		return res.Violation
	case res.Limit != nil:
		return res.Limit
	case res.Failure != nil:
		return res.Failure
	}
	return nil
}
