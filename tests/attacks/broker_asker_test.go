//go:build linux

package attacks_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/bridge/ask"
	"parlour/guardrail/secret"
	"parlour/runner"
	"parlour/runner/broker"
	"parlour/runner/policy"
	"parlour/runner/probe/mock"
	"parlour/runner/spec"
	discordfake "parlour/tests/fakes/discord"
	slackfake "parlour/tests/fakes/slack"
	"parlour/tests/house"
	"parlour/tiers"
)

// talk is an agent that asks its model once, names itself and others as the real
// ones do, and prints something else than its model said.
func talk([]string) int {
	p := broker.Protocol(os.Getenv("PROTOCOL"))
	extra := `,"metadata":{"user_id":"CLIENT-device"}`
	if p == broker.OpenAI {
		extra = `,"user":"CLIENT-a","safety_identifier":"CLIENT-b","prompt_cache_key":"CLIENT-c"`
	}
	r, err := http.NewRequest(http.MethodPost, os.Getenv("BROKER")+path(p), strings.NewReader(question(p, extra)))
	if err != nil {
		return 1
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("X-Api-Key", os.Getenv("TOKEN"))
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		return 1
	}
	defer func() { _ = got.Body.Close() }()
	_, _ = io.Copy(io.Discard, got.Body)
	fmt.Println("FORGED: the model said so")
	return 0
}

// Who asks, and where.
const (
	chatToken = "token-sentinel.discord.0001"
	chatBot   = "100000000000000001"
	guildID   = "900000000000000001"
	placeID   = "700000000000000001"
	hallID    = "C0HALL0001"
	annaID    = "333333333333333333"
	benID     = "444444444444444444"
	carlaID   = "U0CARLA001"
)

// village is a house between a Discord, a Slack and a model. Its guests are
// answered by the talker in Anthropic's protocol, its team in OpenAI's.
type village struct {
	*house.House
	discord *discordfake.Server
	slack   *slackfake.Server
	model   *mock.Model
	config  string
}

func newVillage(t *testing.T, turns ...mock.Turn) *village {
	t.Helper()
	v := &village{House: house.New(t), model: mock.New(turns...)}
	if rung, why := v.Sandbox(); rung != "full" {
		t.Skipf("needs the full sandbox: %s", why)
	}
	provider := httptest.NewServer(v.model)
	t.Cleanup(provider.Close)
	var err error
	v.discord, err = discordfake.New(discordfake.Config{Token: chatToken, Bot: chatBot})
	require.NoError(t, err)
	t.Cleanup(v.discord.Close)
	v.discord.AddChannel(discordfake.Channel{ID: placeID, Guild: guildID, Name: "questions"})
	v.slack, err = slackfake.Start(slackfake.Config{})
	require.NoError(t, err)
	t.Cleanup(v.slack.Close)
	v.slack.AddChannel(slackfake.Channel{ID: hallID})
	v.slack.AddUser(slackfake.User{ID: carlaID, Name: "Carla Clear"})

	self, err := os.Executable()
	require.NoError(t, err)
	program := v.Link("bin/talker", self)
	for _, protocol := range protocols() {
		v.Write("manifests/runners/talks-"+string(protocol)+".yaml", fmt.Sprintf("name: talks-%s\nbinaries: [%q]\nprovider: %s\n"+
			"safe:\n  owner: {ok: true}\n  team: {ok: true}\n  guest: {ok: true}\nargs: []\nprompt: argument\nanswer: text\n"+
			"env: {BROKER: \"{broker}\", TOKEN: \"{token}\", PROTOCOL: %s}\n", protocol, program, protocol, protocol))
	}
	rules := "policy: {mode: read-only, network: model-only, runners: [talks-%s], model: {anthropic: granted-model, openai: granted-model, output_tokens: 4096}}\n" +
		"asking: {per_minute: 100, running: 8, waiting: 16}\n"
	v.Write("manifests/tiers/owner.yaml", "tier: owner\nmatch:\n  discord:\n    - {users: [\"111111111111111111\"]}\n")
	v.Write("manifests/tiers/guest.yaml", "tier: guest\nmatch:\n  discord:\n    - {guild: \""+guildID+"\", channels: [\""+placeID+"\"], anyone: true}\n"+
		fmt.Sprintf(rules, broker.Anthropic))
	v.Write("manifests/tiers/team.yaml", "tier: team\nmatch:\n  slack:\n    - {workspace: "+slackfake.HomeTeam+", users: ["+carlaID+"]}\n"+
		fmt.Sprintf(rules, broker.OpenAI))
	v.config = v.Write("config.yaml", "model:\n  anthropic: {base_url: \""+provider.URL+"\", key: {env: KEY_M}}\n"+
		"  openai: {base_url: \""+provider.URL+"\", key: {env: KEY_M}}\n"+
		"discord: {token: {env: DISCORD_TOKEN}, api: \""+v.discord.URL()+"\"}\n"+
		"slack: {app_token: {env: SLACK_APP}, bot_token: {env: SLACK_BOT}, api: \""+v.slack.API()+"\"}\n"+
		"manifests: ./manifests\nstate: ./state/serve\nlisten: 127.0.0.1:0\n")
	v.Env = append(v.Env, "KEY_M="+operatorKey, "DISCORD_TOKEN="+chatToken, "SLACK_APP="+slackfake.AppToken, "SLACK_BOT="+slackfake.BotToken)
	return v
}

// serve starts the bot, waits until it is connected, and gives what ends it.
func (v *village) serve(t *testing.T) (*house.Printed, func()) {
	t.Helper()
	cmd, log := v.Command("serve", "--config", v.config), &house.Printed{}
	cmd.Stdout, cmd.Stderr = log, log
	require.NoError(t, cmd.Start())
	end := sync.OnceFunc(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
	})
	t.Cleanup(end)
	require.Eventually(t, log.Ready, time.Minute, 10*time.Millisecond, "the bot is not ready")
	return log, end
}

// says lets a person of Discord ask and waits for the answer in the thread.
func (v *village) says(t *testing.T, user, name, text string) string {
	t.Helper()
	id := v.discord.Say(discordfake.Said{Channel: placeID, Author: discordfake.User{ID: user, Name: name}, Content: "<@" + chatBot + "> " + text})
	require.Eventually(t, func() bool { return len(v.discord.Posted(id)) > 0 }, time.Minute, 10*time.Millisecond, "no answer in Discord")
	return v.discord.Posted(id)[0].Content
}

// writes lets Carla ask in Slack and waits for the answer in the thread.
func (v *village) writes(t *testing.T, text string) string {
	t.Helper()
	ts := v.slack.Say(slackfake.Post{Channel: hallID, User: carlaID, Text: "<@" + slackfake.BotUser + "> " + text})
	answer := func() int {
		return slices.IndexFunc(v.slack.Answers(), func(m slackfake.Message) bool { return m.Thread == ts })
	}
	require.Eventually(t, func() bool { return answer() >= 0 }, time.Minute, 10*time.Millisecond, "no answer in Slack")
	return v.slack.Answers()[answer()].Text
}

// asks asks at the terminal with a state folder of its own and gives the result.
func (v *village) asks(t *testing.T, state string, flags ...string) house.Result {
	t.Helper()
	args := append([]string{"ask", "--config", v.config, "--state", v.Path(state)}, flags...)
	return v.Bot(append(args, "--", "who am I?")...)
}

// named is how the provider was told of an asker and of a prompt cache.
type named struct{ asker, cache string }

// last gives the names in the newest request that the provider got.
func (v *village) last(t *testing.T) named {
	t.Helper()
	all := v.named(t)
	require.NotEmpty(t, all)
	return all[len(all)-1]
}

func (v *village) named(t *testing.T) (all []named) {
	t.Helper()
	for _, r := range v.model.Requests() {
		var body struct {
			Metadata struct {
				User string `json:"user_id"`
			}
			Safety string `json:"safety_identifier"`
			Cache  string `json:"prompt_cache_key"`
		}
		require.NoError(t, json.Unmarshal(r.Body, &body))
		all = append(all, named{body.Metadata.User + body.Safety, body.Cache})
	}
	return all
}

// events gives the journal of a state folder as `bot events --json` prints it.
func (v *village) events(t *testing.T, state string) string {
	t.Helper()
	got := v.Bot("events", "--json", "--limit", "1000", "--config", v.config, "--state", v.Path(state))
	require.Equal(t, 0, got.Code, got.Err)
	return got.Out
}

// TestT28EachAskerHasOneNameAtTheProvider: the same person has one name, also
// after a restart, everybody else another, and another house other ones; nobody
// can tell from it who it is, but the operator can look it up.
func TestT28EachAskerHasOneNameAtTheProvider(t *testing.T) {
	v := newVillage(t, mock.Turn{Text: "from the model"})
	log, end := v.serve(t)
	shown := v.says(t, annaID, "Anna Apt", "one")
	anna := v.last(t)
	require.Regexp(t, `^[0-9a-f]{32}$`, anna.asker, "what the agent itself said is replaced")
	shown += v.says(t, benID, "Ben Bold", "two")
	ben := v.last(t)
	shown += v.writes(t, "three")
	carla := v.last(t)
	require.Regexp(t, `^[0-9a-f]{32}$`, carla.asker)
	require.Regexp(t, `^[0-9a-f]{32}$`, carla.cache)
	shown += v.says(t, annaID, "Anna Apt the Second", "four")
	require.Equal(t, anna, v.last(t), "a name of a chat does not matter")
	require.NotEqual(t, anna.asker, ben.asker)
	require.NotEqual(t, anna.asker, carla.asker)

	end()
	again, _ := v.serve(t)
	shown += v.says(t, annaID, "Anna Apt", "five") + v.writes(t, "six")
	require.Equal(t, []named{anna, carla}, v.named(t)[4:], "they keep their names after a restart")

	terminal := v.asks(t, "state/serve", "--as", "team")
	require.Equal(t, 0, terminal.Code, terminal.Err)
	me := v.last(t)
	require.NotContains(t, []string{anna.asker, ben.asker, carla.asker}, me.asker)
	require.Equal(t, carla.cache, me.cache, "one for the tier")
	require.NotEqual(t, me.asker, me.cache)

	other := v.asks(t, "state/other", "--as", "team", "--json")
	require.Equal(t, 0, other.Code, other.Err)
	require.NotEqual(t, me.asker, v.last(t).asker, "another state folder, another name")
	require.NotEqual(t, me.cache, v.last(t).cache)

	for _, r := range v.model.Requests() {
		text := string(r.Body) + fmt.Sprint(r.Header)
		for _, raw := range []string{"CLIENT", annaID, benID, carlaID, guildID, placeID, hallID, slackfake.HomeTeam, "Apt", "Bold", "Clear", "discord:", "slack:", "local:"} {
			require.NotContains(t, text, raw)
		}
	}
	events := v.events(t, "state/serve")
	for _, n := range []named{anna, ben, carla, me} {
		require.Contains(t, events, `"asker":"`+n.asker+`"`, "the operator finds the person by the name")
		require.NotContains(t, shown+terminal.Out+terminal.Err+other.Out+log.String()+again.String(), n.asker, "nobody else is shown it")
	}
	v.holdsNoAskerKey(t, "state/serve", events+shown+terminal.Out+terminal.Err+log.String()+again.String())
}

// holdsNoAskerKey fails where a text, or a model request, holds the secret.
func (v *village) holdsNoAskerKey(t *testing.T, state, text string) {
	t.Helper()
	file := v.Path(state, "asker.key")
	info, err := os.Stat(file)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	key, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Regexp(t, `^[0-9a-f]{64}\n$`, string(key))
	for _, r := range v.model.Requests() {
		text += string(r.Body)
	}
	require.NotContains(t, text, strings.TrimSpace(string(key)))
}

// TestMetricsAndHealthNameNobody: they are counted over all, so no id, no name,
// no word of a question or an answer and no secret is on these pages.
func TestMetricsAndHealthNameNobody(t *testing.T) {
	v := newVillage(t, mock.Turn{Text: "SENTINEL-answer"})
	log, _ := v.serve(t)
	v.says(t, annaID, "SENTINEL-name", "SENTINEL-question")
	anna := v.last(t)
	v.writes(t, "SENTINEL-question")
	carla := v.last(t)
	key, err := os.ReadFile(v.Path("state", "serve", "asker.key"))
	require.NoError(t, err)
	const counted = `parlour_questions_ended_total{cause="",outcome="answered",platform="slack",runner="talks-openai",tier="team"} 1`
	shown := ""
	require.Eventually(t, func() bool { // it is counted when it has been delivered
		shown, err = log.Page("/metrics")
		return err == nil && strings.Contains(shown, counted)
	}, time.Minute, 10*time.Millisecond, "the answer is not counted")
	for _, page := range []string{"/healthz", "/readyz", "/"} {
		text, err := log.Page(page)
		require.NoError(t, err)
		shown += text
	}
	require.Contains(t, shown, `parlour_questions_accepted_total{platform="discord",tier="guest"} 1`)
	for _, hidden := range []string{
		"SENTINEL", "sentinel", annaID, carlaID, guildID, placeID, hallID, slackfake.HomeTeam, "Clear", anna.asker, carla.asker, carla.cache,
		operatorKey, slackfake.AppToken, slackfake.BotToken, strings.TrimSpace(string(key)), v.Dir, "granted-model",
	} {
		require.NotContains(t, shown, hidden)
	}
}

// TestT28ManyBotsMakeOneSecret: bots that start at once in a new state folder
// agree on the secret, so nobody has two names.
func TestT28ManyBotsMakeOneSecret(t *testing.T) {
	v := newVillage(t)
	bots := []*exec.Cmd{}
	for range 6 {
		cmd := v.Command("ask", "--config", v.config, "--state", v.Path("state", "new"), "--", "who am I?")
		require.NoError(t, cmd.Start())
		bots = append(bots, cmd)
	}
	for _, cmd := range bots {
		require.NoError(t, cmd.Wait())
	}
	all := v.named(t)
	require.Len(t, all, len(bots))
	for _, n := range all {
		require.Equal(t, all[0], n)
	}
	left, err := filepath.Glob(v.Path("state", "new", ".asker*"))
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestT28ASecretThatOthersKnowIsRefused: or one that is none, in one line and
// before any request; it is not replaced in silence.
func TestT28ASecretThatOthersKnowIsRefused(t *testing.T) {
	good := strings.Repeat("0123456789abcdef", 4) + "\n"
	for name, c := range map[string]struct {
		spoil func(t *testing.T, path string)
		want  string
	}{
		"readable":  {put(good, 0o644), "is open to others (mode 0644): run chmod 600 on it"},
		"writable":  {put(good, 0o620), "is open to others (mode 0620)"},
		"empty":     {put("", 0o600), "is damaged"},
		"short":     {put(good[2:], 0o600), "is damaged"},
		"long":      {put("00"+good, 0o600), "is damaged"},
		"two lines": {put(good+good, 0o600), "is damaged"},
		"no secret": {put(strings.Repeat("z", 64)+"\n", 0o600), "is damaged"},
		"a folder":  {func(t *testing.T, path string) { require.NoError(t, os.Mkdir(path, 0o700)) }, "is not a file that can be read"},
		"a link": {func(t *testing.T, path string) {
			put(good, 0o600)(t, path+".other")
			require.NoError(t, os.Symlink(path+".other", path))
		}, "is not a file that can be read"},
		"a pipe": {func(t *testing.T, path string) { require.NoError(t, syscall.Mkfifo(path, 0o600)) }, "is not a file that can be read"},
	} {
		t.Run(name, func(t *testing.T) {
			v := newVillage(t)
			require.NoError(t, os.Mkdir(v.Path("state", "spoilt"), 0o700))
			c.spoil(t, v.Path("state", "spoilt", "asker.key"))
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second) // where it is not refused it would serve for ever
			defer cancel()
			serve := exec.CommandContext(ctx, house.Bot(t), "serve", "--config", v.config, "--state", v.Path("state", "spoilt"))
			serve.Env, serve.Dir = v.Env, v.Dir
			for _, run := range []func() house.Result{
				func() house.Result { return v.asks(t, "state/spoilt") },
				func() house.Result { return house.Run(t, serve) },
			} {
				got := run()
				require.Equal(t, 2, got.Code, got.Err)
				require.Contains(t, got.Err, c.want)
				require.Equal(t, 1, strings.Count(got.Err, "\n"), got.Err)
				require.NotContains(t, got.Err+got.Out, "0123456789abcdef")
			}
			require.Empty(t, v.model.Requests())
		})
	}
}

// put gives what writes a file with a mode.
func put(text string, mode os.FileMode) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		require.NoError(t, os.Chmod(path, mode))
	}
}

// TestT28TheSecretIsCutOutOfAnswers: like every other that the bot holds.
func TestT28TheSecretIsCutOutOfAnswers(t *testing.T) {
	key := strings.Repeat("0123456789abcdef", 4)
	v := newVillage(t, mock.Turn{Text: "the secret is " + key})
	require.NoError(t, os.Mkdir(v.Path("state", "known"), 0o700))
	put(key+"\n", 0o600)(t, v.Path("state", "known", "asker.key"))
	ended := v.asks(t, "state/known", "--json").Ended(t)
	require.Equal(t, ask.Answered, ended.Outcome.Kind, "%+v", ended)
	require.Equal(t, "the secret is <secret>", ended.Outcome.Text)
}

// TestT17AForgedOutputIsNotTheAnswer: what the program prints is no source where
// there is a model.
func TestT17AForgedOutputIsNotTheAnswer(t *testing.T) {
	v := newVillage(t, mock.Turn{Text: "what the model said"})
	ended := v.asks(t, "state/new", "--json").Ended(t)
	require.Equal(t, ask.Answered, ended.Outcome.Kind, "%+v", ended)
	require.Equal(t, "what the model said", ended.Outcome.Text)
}

// TestT28NobodyAsksAModelUnnamed: a run whose asker is not named does not start,
// so no wiring can forget it.
func TestT28NobodyAsksAModelUnnamed(t *testing.T) {
	box := newBox(t)
	model := mock.New()
	provider := httptest.NewServer(model)
	t.Cleanup(provider.Close)
	talker := spec.Spec{Name: "talker", Binaries: []string{box.self}, Provider: spec.Anthropic, Prompt: spec.ByArgument, Answer: spec.Text,
		Safe: spec.Safety{Guest: spec.Verdict{OK: true}}}
	limits := boxLimits()
	limits.ModelRequests, limits.OutputTokens = 4, 4096
	r, err := runner.New(runner.Config{
		Specs: []spec.Spec{talker}, Engine: box.Engine, Self: box.self, Finder: runner.NewFinder("/usr/bin", t.TempDir(), os.Getuid()),
		Tiers: map[ask.Tier]runner.TierPolicy{tiers.Guest: {
			Wish: policy.Wish{Mode: policy.ReadOnly, Network: policy.ModelOnly, Limits: limits}, List: []string{"talker"},
			Models: map[spec.Provider]string{spec.Anthropic: "granted-model"},
		}},
		Models: map[spec.Provider]broker.Upstream{spec.Anthropic: {BaseURL: provider.URL, Key: secret.New(operatorKey)}},
	})
	require.NoError(t, err)
	plan, err := r.Plan(t.Context(), tiers.Guest, nil)
	require.NoError(t, err)
	result := r.Run(t.Context(), plan, ask.Prompt{Policy: "p", Question: "q", Fenced: "q"})
	require.Equal(t, ask.NotStarted, result.Cause)
	require.Contains(t, result.Detail, "nobody is named as the asker")
	require.Zero(t, model.Asked())
}
