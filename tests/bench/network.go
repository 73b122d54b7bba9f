package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"time"

	"parlour/guardrail/secret"
	"parlour/runner/broker"
	"parlour/runner/policy"
	"parlour/runner/probe/mock"
	"parlour/runner/sandbox"
)

// clientName is the first argument of this program as a client, in and outside
// of a sandbox.
const clientName = "client"

func command(path string) sandbox.Command {
	return sandbox.Command{Name: "true", Path: path, Env: []string{}}
}

// client opens new connections to an address and prints what each took.
func client(address string, _ []string) int {
	var took samples
	for range 200 {
		begin := time.Now()
		if err := fetch(address); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		took = append(took, time.Since(begin))
	}
	if err := json.NewEncoder(os.Stdout).Encode(took); err != nil {
		return 1
	}
	return 0
}

// fetch makes one request on a connection of its own.
func fetch(address string) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	if _, err := io.WriteString(conn, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
		return err
	}
	_, err = io.ReadAll(conn)
	return err
}

// listener compares a handler behind the socket that the sandbox handed out with
// the same handler on the host's loopback.
func listener(ctx context.Context, r *rig) ([]row, error) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	host := httptest.NewServer(handler)
	defer host.Close()
	var inside, outside samples
	for range 7 {
		got, err := r.fromInside(ctx, handler)
		if err != nil {
			return nil, err
		}
		inside = append(inside, time.Duration(got.at(50)))
		out, err := exec.CommandContext(ctx, r.self, clientName, strings.TrimPrefix(host.URL, "http://")).Output()
		if err != nil {
			return nil, err
		}
		var plain samples
		if err := json.Unmarshal(out, &plain); err != nil {
			return nil, err
		}
		outside = append(outside, time.Duration(plain.at(50)))
	}
	return []row{below("new connection over the passed listener ÷ host loopback, p50", inside.at(50)/outside.at(50), 1.4)}, nil
}

// fromInside runs the client in a sandbox whose listener the handler serves.
func (r *rig) fromInside(ctx context.Context, handler http.Handler) (samples, error) {
	var out bytes.Buffer
	run, err := r.Start(ctx, r.eff, sandbox.Command{
		Name: "client", Path: r.self, Args: []string{clientName, policy.BrokerAddr}, Env: []string{}, Stdout: &out, Stderr: os.Stderr,
	})
	if err != nil {
		return nil, err
	}
	served := make(chan error, 1)
	go func() { served <- http.Serve(run.Listener(), handler) }()
	exit, err := run.Wait()
	<-served
	if err == nil && exit.Code != 0 {
		err = fmt.Errorf("the client ended with %d", exit.Code)
	}
	var took samples
	return took, errors.Join(err, json.Unmarshal(out.Bytes(), &took))
}

// gateway measures what the model gateway adds to a request.
func gateway(ctx context.Context, _ *rig) ([]row, error) {
	model := httptest.NewServer(mock.New(mock.Turn{Text: "an answer"}))
	defer model.Close()
	const n = 200
	key := secret.New("sk-bench-0123456789")
	session, err := broker.Open(ctx, broker.Upstream{Protocol: broker.Anthropic, BaseURL: model.URL, Key: key},
		broker.Grant{Model: "m", Requests: n + 1, OutputTokens: 64, Silence: time.Minute, Asker: "asker", Cache: "cache"}, broker.Hooks{})
	if err != nil {
		return nil, err
	}
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() { _ = session.Serve(at) }() // it ends with Close
	defer func() { _ = session.Close() }()
	ask := func(base, key string) func() (time.Duration, error) {
		return func() (time.Duration, error) { return timed(func() error { return question(ctx, base, key) }) }
	}
	all, err := turns(n, ask("http://"+at.Addr().String(), session.Token().Reveal()), ask(model.URL, "x"))
	if err != nil {
		return nil, err
	}
	added := time.Duration(all[0].at(50) - all[1].at(50))
	return []row{said("the gateway adds to a request, p50", added.Round(time.Microsecond).String())}, nil
}

func question(ctx context.Context, base, key string) error {
	body := `{"model":"m","max_tokens":16,"stream":true,"messages":[{"role":"user","content":"hi"}]}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/messages", strings.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Api-Key", key)
	req.Header.Set("Anthropic-Version", "2023-06-01")
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %d: %s", resp.StatusCode, text)
	}
	return err
}
