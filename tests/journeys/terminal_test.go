package journeys_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/require"

	"parlour/bridge/ask"
	"parlour/runner/policy"
	"parlour/tests/house"
)

const question = "Who may edit a tier manifest?"

func TestAGuestAsksWithoutAnyConfiguration(t *testing.T) {
	h := house.New(t)
	got := h.Bot("ask", "--as", "guest", question)
	require.Equal(t, 0, got.Code, got.Err)
	require.Empty(t, got.Err)
	require.Contains(t, got.Out, "handbook/operator.md › Who may edit a tier manifest", "the answer cites file and heading")
	lines := strings.Split(strings.TrimSpace(got.Out), "\n")
	receipt := lines[len(lines)-1]
	rung, _ := h.Sandbox()
	if rung == "none" {
		rung = "off · " + policy.Unsandboxed
	}
	for _, part := range []string{
		"receipt: answered", "tier guest", "runner docs", "agy: not safe for guest", "codex: not installed", "claude: not installed",
		"gemini: not installed", "sandbox " + rung, "time ", "job ",
	} {
		require.Contains(t, receipt, part)
	}
}

func TestATerminalAsksAsGuestUnlessItSaysOtherwise(t *testing.T) {
	h := house.New(t)
	for tier, flags := range map[string][]string{"guest": nil, "team": {"--as", "team"}, "owner": {"--as", "owner"}} {
		ended := h.Bot(slices.Concat([]string{"ask", "--json"}, flags, []string{question})...).Ended(t)
		require.Equal(t, ask.Answered, ended.Outcome.Kind, tier)
		require.Equal(t, tier, ended.Receipt.Tier.String())
	}
}

func TestNoRunnerIsShownTheBotsState(t *testing.T) {
	h := house.New(t)
	h.Write("manifests/runners/reader.yaml", "name: reader\nbinaries: [reader]\nprovider: none\nsafe: {}\nprompt: argument\nanswer: text\nread_only: [/nowhere]\n")
	runners := func(state string) house.Result {
		return h.Bot("runners", "--manifests", h.Path("manifests"), "--state", state)
	}
	got := runners("/nowhere/state")
	require.Equal(t, 2, got.Code, got.Out)
	require.Contains(t, got.Err, `reader.yaml: read_only holds "/nowhere", which overlaps with /nowhere/state`)
	got = runners(h.Path("state"))
	require.Equal(t, 0, got.Code, got.Err)
}

func TestAnHonestNothingFound(t *testing.T) {
	ended := house.New(t).Bot("ask", "--json", "What is the capital of France?").Ended(t)
	require.Equal(t, ask.Answered, ended.Outcome.Kind)
	require.Contains(t, ended.Outcome.Text, "I found nothing about this")
}

func TestBadInputIsOneLineAndStartsNothing(t *testing.T) {
	h := house.New(t)
	nul := h.Write("nul.txt", "a\x00b")
	binary := h.Write("binary.txt", "caf\xe9")
	long := h.Write("long.txt", strings.Repeat("a", ask.MaxQuestion+1))
	empty := h.Write("empty.txt", " \n")
	broken := h.Write("broken.yaml", "runers: {}\n")
	h.Write("badset/tiers/guest.yaml", "tier: gest\n")
	cases := map[string]struct {
		args []string
		want string
	}{
		"unknown tier":           {[]string{"ask", "--as", "boss", "q"}, `bot: --as: unknown tier "boss" (known: guest, team, owner)`},
		"the tier none":          {[]string{"ask", "--as", "none", "q"}, `bot: --as: unknown tier "none"`},
		"no question":            {[]string{"ask"}, "bot: the question is empty"},
		"empty file":             {[]string{"ask", "--prompt-file", empty}, "bot: the question is empty"},
		"question and file":      {[]string{"ask", "--prompt-file", empty, "q"}, "bot: give the question or --prompt-file, not both"},
		"missing file":           {[]string{"ask", "--prompt-file", h.Path("none.txt")}, "bot: read the question: "},
		"over 64 KiB":            {[]string{"ask", "--prompt-file", long}, "bot: the question is longer than 64 KiB"},
		"NUL":                    {[]string{"ask", "--prompt-file", nul}, "bot: the question holds a NUL byte at byte 2"},
		"invalid UTF-8":          {[]string{"ask", "--prompt-file", binary}, "bot: the question is not valid UTF-8 at byte 4"},
		"invalid UTF-8 argument": {[]string{"ask", "caf\xe9"}, "bot: argument 2 is not valid UTF-8"},
		"missing config":         {[]string{"ask", "--config", h.Path("none.yaml"), "q"}, "none.yaml: cannot be read: no such file or directory"},
		"faulty config":          {[]string{"ask", "--config", broken, "q"}, `broken.yaml:1:1: unknown key "runers"; right: runners?`},
		"missing manifests":      {[]string{"ask", "--manifests", h.Path("none"), "q"}, "none: there is no such folder"},
		"faulty manifest":        {[]string{"ask", "--manifests", h.Path("badset"), "q"}, "guest.yaml:1:7: "},
		"unknown flag":           {[]string{"ask", "--az", "q"}, "bot: unknown flag --az"},
		"unknown command":        {[]string{"aks", "q"}, "bot: unexpected argument aks"},
		"no command":             {[]string{}, "bot: expected one of"},
		"guardrail of a tier":    {[]string{"guardrail", "--tier", "boss"}, `bot: --tier: unknown tier "boss"`},
		"events limit":           {[]string{"events", "--limit", "0"}, "bot: --limit must be at least 1"},
		"explain a name":         {[]string{"explain", "--platform", "discord", "--direct", "--channel", "41771983423143937", "--user", "alice"}, `bot: "alice" is not a Discord user id: `},
		"explain nowhere":        {[]string{"explain", "--platform", "discord", "--channel", "41771983423143937", "--user", "41771983423143937"}, "bot: --workspace is missing; for a direct message say --direct"},
		"explain no workspace":   {[]string{"explain", "--platform", "slack", "--channel", "C0123ABCD", "--user", "U0123ABCD"}, "bot: --workspace is missing"},
		"unquoted question":      {[]string{"ask", "what", "is", "it"}, "a question of several words stands in quotes"},
		"events of nobody":       {[]string{"events", "--job", "01NOPE"}, "bot: no question 01NOPE in "},
		"explain a platform":     {[]string{"explain", "--platform", "irc", "--channel", "1", "--user", "1"}, "bot: --platform"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got := h.Bot(c.args...)
			require.Equal(t, 2, got.Code, got.Err)
			require.Empty(t, got.Out, "nothing was answered")
			require.Contains(t, got.Err, c.want)
			for _, line := range strings.Split(strings.TrimSpace(got.Err), "\n") {
				require.NotEmpty(t, line)
				require.Less(t, len(line), 400, "one clear line")
			}
		})
	}
	require.NoDirExists(t, h.Path("state", "parlour"), "no journal was begun for any of them")
}

func TestCheckTellsEveryFaultAtOnce(t *testing.T) {
	h := house.New(t)
	h.Env = append(h.Env, "SHORT=abc")
	h.Write("m/tiers/guest.yaml", "tier: gest\n")
	h.Write("m/runners/x.yaml", "name: y\n")
	config := h.Write("config.yaml", "listn: x\nmodel: {openai: {key: {env: SHORT}}, gemini: {key: {file: none}}}\nrunners: {order: [doc]}\nmanifests: m\n")
	got := h.Bot("check", "--config", config)
	require.Equal(t, 2, got.Code)
	for _, part := range []string{
		`config.yaml:1:1: unknown key "listn"`, "config.yaml:2:29: model.openai.key: this is not a secret", "config.yaml:2:59: model.gemini.key: the file ",
		"tiers/guest.yaml:1:7: ", "runners/x.yaml:1:7: ",
	} {
		require.Contains(t, got.Err, part)
	}
	asJSON := h.Bot("check", "--json", "--config", config)
	require.Equal(t, 2, asJSON.Code)
	var failed struct {
		Error  string
		Faults []string
		Exit   int
	}
	require.NoError(t, json.Unmarshal([]byte(asJSON.Out), &failed), asJSON.Out)
	require.Equal(t, 2, failed.Exit)
	require.Len(t, failed.Faults, len(strings.Split(strings.TrimSpace(got.Err), "\n")))

	got = h.Bot("check", "--config", h.Write("fine.yaml", "model: {openai: {key: {env: NOT_SET}}}\n"))
	require.Equal(t, 0, got.Code, got.Err)
	require.Contains(t, got.Out, "warning: "+h.Path("fine.yaml")+":1:29: model.openai.key: the variable NOT_SET is not set")
	require.Contains(t, got.Out, "(configuration: "+h.Path("fine.yaml")+"; manifests: the shipped ones)")
}

func TestAnAnswerThatNobodyCouldReadWasNotGiven(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("needs /dev/full")
	}
	h := house.New(t)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	require.NoError(t, err)
	defer func() { _ = full.Close() }()
	cmd := h.Command("ask", question)
	cmd.Stdout = full
	require.Error(t, cmd.Run())
	require.Equal(t, 1, cmd.ProcessState.ExitCode())
	require.NotContains(t, kinds(h.Log()), ask.EventDelivered)
}

func TestNoRunnerIsSaidHonestly(t *testing.T) {
	h := house.New(t)
	h.Guest("[agy, codex, claude, gemini]")
	got := h.Bot("ask", "--manifests", h.Path("manifests"), "q")
	require.Equal(t, 1, got.Code)
	require.Contains(t, got.Out, ask.Sentence(ask.NoRunner))
	require.Contains(t, got.Out, "unavailable · tier guest · runner none · skipped agy: not safe for guest")
	require.Contains(t, got.Out, "claude: not installed")

	events := kinds(h.Log())
	require.Equal(t, []string{ask.EventAccepted, ask.EventDecided, ask.EventOutcome, ask.EventDelivered}, events, "no run was begun")

	got = h.Bot("guardrail", "--manifests", h.Path("manifests"), "--tier", "guest")
	require.Equal(t, 1, got.Code)
	require.Empty(t, got.Out)
	require.Contains(t, got.Err, ask.Sentence(ask.NoRunner))
}

func TestInstalledWithoutAKeyIsSkippedBeforeAnybodyWaits(t *testing.T) {
	h := house.New(t)
	for _, name := range []string{"agy", "codex", "claude", "gemini"} {
		h.Program("bin/"+name, "#!/bin/sh\ntouch "+h.Path("started-"+name)+"\n"+
			"echo --restricted --strict-mcp-config --tools --permission-mode --disable-slash-commands --no-session-persistence\n")
	}
	h.Env = []string{"HOME=" + h.Path("home"), "PATH=" + h.Path("bin") + ":/usr/bin:/bin", "XDG_STATE_HOME=" + h.Path("state")}
	ended := h.Bot("ask", "--json", question).Ended(t)
	require.Equal(t, "docs", ended.Receipt.Choice.Runner)
	skipped := map[string]string{}
	for _, s := range ended.Receipt.Choice.Skipped {
		skipped[s.Runner] = s.Reason
	}
	require.Contains(t, skipped["agy"], "not safe for guest")
	for name, provider := range map[string]string{"codex": "openai", "claude": "anthropic", "gemini": "gemini"} {
		require.Contains(t, skipped[name], "installed, but no credential: no key for "+provider+" is configured")
	}

	h.Env = append(h.Env, "ANTHROPIC_API_KEY=sk-ant-sentinel-0000000000")
	config := h.Write("config.yaml", "model: {anthropic: {key: {env: ANTHROPIC_API_KEY}}}\n")
	got := h.Bot("--config", config, "runners")
	require.Equal(t, 0, got.Code, got.Err)
	require.Contains(t, got.Out, "guest: claude (order from the manifest)")
	require.NotContains(t, got.Out+got.Err, "sentinel")
	found, err := filepath.Glob(h.Path("started-*"))
	require.NoError(t, err)
	require.Empty(t, found, "a program is asked for its flags in the sandbox alone")
}

func TestPlantedProgramsAreNotPicked(t *testing.T) {
	h := house.New(t)
	h.Program("work/claude", "#!/bin/sh\n")
	h.Program("work/bin/codex", "#!/bin/sh\n")
	h.Env = []string{"HOME=" + h.Path("home"), "PATH=.::bin:~/bin:/usr/bin:/bin", "XDG_STATE_HOME=" + h.Path("state")}
	cmd := h.Command("runners", "--json")
	cmd.Dir = h.Path("work")
	got := house.Run(t, cmd)
	require.Equal(t, 0, got.Code, got.Err)
	require.NotContains(t, got.Out, h.Path("work"))
	var seen struct {
		Runners []struct{ Runner, Path string }
	}
	require.NoError(t, json.Unmarshal([]byte(got.Out), &seen))
	for _, r := range seen.Runners {
		require.True(t, r.Path == "" || filepath.IsAbs(r.Path), "%s is run as %q", r.Runner, r.Path)
	}
}

func TestTheEnvironmentReordersAndShortensOnly(t *testing.T) {
	h := house.New(t)
	h.Env = append(h.Env, "PARLOUR_RUNNERS=dosc, nothing")
	got := h.Bot("ask", "--json", question)
	require.Equal(t, "docs", got.Ended(t).Receipt.Choice.Runner, "a list without a known name falls back to the tier's own")
	require.Equal(t, "manifest", got.Ended(t).Receipt.Choice.Origin)
	require.Contains(t, got.Err, "warning: PARLOUR_RUNNERS: unknown dosc, nothing dropped")

	h.Env[len(h.Env)-1] = "PARLOUR_RUNNERS=docs"
	choice := h.Bot("ask", "--json", question).Ended(t).Receipt.Choice
	require.Equal(t, "environment", choice.Origin)
	require.Empty(t, choice.Skipped)
}

func TestAnOperatorSeesWhoSomebodyIs(t *testing.T) {
	h := house.New(t)
	h.Write("manifests/tiers/guest.yaml", `tier: guest
match:
  discord:
    - {guild: "80351110224678912", channels: ["41771983423143937"], anyone: true}
policy: {mode: read-only, network: none, runners: [docs]}
`)
	explain := func(flags ...string) house.Result {
		return h.Bot(append([]string{"explain", "--manifests", h.Path("manifests"), "--platform", "discord", "--user", "53908232506183680"}, flags...)...)
	}
	got := explain("--workspace", "80351110224678912", "--channel", "41771983423143937")
	require.Equal(t, 0, got.Code, got.Err)
	for _, part := range []string{
		"tier: guest", "guest.yaml:4", "runner: docs", "__docs", "environment: HOME LANG PATH TMPDIR", "# Sandbox policy", "rung=",
	} {
		require.Contains(t, got.Out, part)
	}
	for name, flags := range map[string][]string{
		"another channel": {"--workspace", "80351110224678912", "--channel", "41771983423143938"},
		"another guild":   {"--workspace", "80351110224678913", "--channel", "41771983423143937"},
		"direct message":  {"--channel", "41771983423143937", "--direct"},
		"a bot":           {"--workspace", "80351110224678912", "--channel", "41771983423143937", "--bot"},
		"not a member":    {"--workspace", "80351110224678912", "--channel", "41771983423143937", "--no-member"},
	} {
		got := explain(flags...)
		require.Equal(t, 0, got.Code, got.Err)
		require.Contains(t, got.Out, "tier: none", name)
		require.Contains(t, got.Out, "nothing would run", name)
	}
}

func TestTheInvocationIsShownInBothForms(t *testing.T) {
	h := house.New(t)
	got := h.Bot("runners", "--invocation")
	require.Equal(t, 0, got.Code, got.Err)
	require.Contains(t, got.Out, `"__docs" "--index" `)
	require.Contains(t, got.Out, "env -i HOME=/home/agent LANG=C.UTF-8 PATH=/usr/bin:/bin TMPDIR=/tmp ")
	require.Contains(t, got.Out, " -- '<question>' </dev/null")
	require.Equal(t, 3, strings.Count(got.Out, "shell, without a sandbox: "))
}

func TestCheckSaysWhatIsMissingForAChat(t *testing.T) {
	got := house.New(t).Bot("check", "--origins")
	require.Equal(t, 0, got.Code, got.Err)
	require.Contains(t, got.Out, "owner.yaml names nobody")
	require.Contains(t, got.Out, "guest: order of runners from the manifest")
	require.Contains(t, got.Out, "ok: ")
}

func TestGuardrailPrintsTheSameBytesEachTime(t *testing.T) {
	h := house.New(t)
	first := h.Bot("guardrail", "--tier", "guest")
	require.Equal(t, 0, first.Code, first.Err)
	require.Equal(t, first.Out, h.Bot("guardrail", "--tier", "guest").Out)

	ended := h.Bot("ask", "--json", question).Ended(t)
	var header ask.RequestHeader
	for _, event := range h.Log() {
		if event.Kind == ask.EventRequest && event.Job == ended.Receipt.Job {
			require.NoError(t, json.Unmarshal(event.Data, &header))
		}
	}
	require.Equal(t, first.Out, header.Policy, "what the run was told is what guardrail prints")
	require.Equal(t, ended.Receipt.PolicyHash, header.PolicyHash)
}

func kinds(events []ask.Event) []string {
	out := []string{}
	for _, e := range events {
		out = append(out, e.Kind)
	}
	return out
}

func TestNothingPrintedReachesTheTerminalRaw(t *testing.T) {
	h := house.New(t)
	hostile := "hello \u009d world \u009b31m \x1b]0;x\x07 \u202e \u2028 end"
	require.Equal(t, 0, h.Bot("ask", hostile).Code)
	require.Equal(t, 0, h.Bot("ask", "--json", hostile).Code)
	for _, got := range []house.Result{h.Bot("events"), h.Bot("events", "--json"), h.Bot("ask", "--as", hostile, "q"), h.Bot("check", "--config", hostile)} {
		for _, r := range got.Out + got.Err {
			require.False(t, r != '\n' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl), "%q in %q", r, got.Out+got.Err)
		}
	}
	for _, e := range h.Log() { // every line is valid JSON, and nothing is lost
		if e.Kind == ask.EventRequest {
			var header ask.RequestHeader
			require.NoError(t, json.Unmarshal(e.Data, &header))
			require.Contains(t, header.Fenced, "\u009d world \u009b31m")
			require.Contains(t, header.Fenced, "end")
		}
	}
}

func TestAStateFolderMayBeNamedRelatively(t *testing.T) {
	h := house.New(t)
	got := h.Bot("ask", "--state", "here", question)
	require.Equal(t, 0, got.Code, got.Err+got.Out)
	require.DirExists(t, h.Path("here"))
	for _, flag := range []string{"--state", "--manifests", "--config"} {
		got := h.Bot("ask", flag, "", question)
		require.Equal(t, 2, got.Code)
		require.Contains(t, got.Err, flag+" is empty")
	}
}

func TestTheStateFolderIsPrivate(t *testing.T) {
	h := house.New(t)
	require.Equal(t, 0, h.Bot("ask", question).Code)
	info, err := os.Stat(h.Path("state", "parlour"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o700), info.Mode().Perm())

	require.NoError(t, os.Chmod(h.Path("state", "parlour"), 0o777))
	got := h.Bot("ask", question)
	require.NotEqual(t, 0, got.Code)
	require.Contains(t, got.Err, "can be written by others")
}

func TestTheFirstCommandRunsFromSource(t *testing.T) {
	path, err := exec.LookPath("go")
	if err != nil {
		t.Skip("needs the Go toolchain on PATH")
	}
	h := house.New(t)
	cmd := exec.Command(path, "run", "./cmd/bot", "ask", "--as", "guest", question)
	cmd.Dir = filepath.Join("..", "..")
	cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+h.Path("state"))
	got := house.Run(t, cmd)
	require.Equal(t, 0, got.Code, got.Err)
	require.Contains(t, got.Out, "handbook/operator.md › ")
}
