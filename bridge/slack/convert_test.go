package slack

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/tiers"
)

func home() self { return self{team: "T0HOME001", user: "U0BOT00001", bot: "B0SELF001"} }

func nobody(string) string { return "" }

func TestConvertIsPure(t *testing.T) {
	raw := `{"type":"event_callback","team_id":"T0HOME001","event":{"type":"app_mention","user":"W012A3CDE",
		"text":"<@U0BOT00001> q","ts":"1789045151.985149","thread_ts":"1789045100.000001","channel":"C0HALL0001"}}`
	q, why := convert([]byte(raw), home(), nobody)
	require.Empty(t, why)
	m := q.message(home(), judge(home(), q, account{team: "T0HOME001"}))
	require.Equal(t, "slack:T0HOME001:C0HALL0001:1789045151.985149", m.ID)
	require.Equal(t, "slack:T0HOME001:C0HALL0001:1789045100.000001", m.Lane)
	require.Equal(t, "C0HALL0001/1789045100.000001/1789045151.985149", m.ReplyTo)
	require.Equal(t, tiers.Identity{Platform: tiers.Slack, Workspace: "T0HOME001", User: "W012A3CDE", Kind: tiers.Person, Member: true}, m.Identity)
	require.Equal(t, tiers.Place{Platform: tiers.Slack, Workspace: "T0HOME001", Channel: "C0HALL0001", Most: tiers.Owner}, m.Place)
	require.Equal(t, time.Unix(1789045151, 985149000).UTC(), m.At)
	require.Equal(t, "q", m.Text)
}

func TestWhatSlackDoesNotVouchForIsLess(t *testing.T) {
	q := question{user: "U0TEAM0001"}
	cases := map[string]struct {
		account
		kind     tiers.Kind
		external bool
		member   bool
	}{
		"nothing at all":      {account{}, tiers.Person, true, false},
		"a member":            {account{team: "T0HOME001"}, tiers.Person, false, true},
		"a stranger":          {account{team: "T0HOME001", stranger: true}, tiers.Person, true, false},
		"another workspace":   {account{team: "T0OTHER01"}, tiers.Person, true, false},
		"a bot":               {account{team: "T0HOME001", bot: true}, tiers.Bot, false, false},
		"a deleted account":   {account{team: "T0HOME001", deleted: true}, tiers.UnknownKind, false, false},
		"a guest account":     {account{team: "T0HOME001", limits: true}, tiers.Person, false, true},
		"a grid that is none": {account{team: "T0OTHER01", enterpriseTeams: []string{"T0HOME001"}}, tiers.Person, true, false},
	}
	for name, c := range cases {
		p := judge(home(), q, c.account)
		require.Equal(t, c.kind, p.identity.Kind, name)
		require.Equal(t, c.external, p.identity.External, name)
		require.Equal(t, c.member, p.identity.Member, name)
		require.Equal(t, c.limits, p.identity.Restricted, name)
		require.Equal(t, q.user, p.identity.User, name)
	}
}

// FuzzConvert looks for payloads that panic, or that give a question without the
// ids on which everything else rests.
func FuzzConvert(f *testing.F) {
	f.Add(`{"type":"event_callback","team_id":"T0HOME001","event":{"type":"message","channel_type":"im","user":"U1A","text":"q","ts":"1.1","channel":"D1A"}}`)
	f.Add(`{"type":"event_callback","team_id":"T0HOME001","event":{"type":"app_mention","user":"U1AB","text":"<@U0BOT00001|x> &lt;","ts":"1.1","channel":"C1AB","thread_ts":"1.0"}}`)
	f.Add(`{"event":null}`)
	f.Add(`[]`)
	f.Fuzz(func(t *testing.T, raw string) {
		q, why := convert([]byte(raw), home(), nobody)
		if why != "" {
			require.Zero(t, q)
			return
		}
		require.True(t, json.Valid([]byte(raw)))
		m := q.message(home(), person{})
		require.Regexp(t, `^slack:T0HOME001:[CDG][A-Z0-9]+:[0-9]+\.[0-9]+$`, m.ID)
		require.True(t, validUser(q.user))
		back, err := parseAddress(m.ReplyTo)
		require.NoError(t, err)
		require.Equal(t, q.channel, back.channel)
	})
}

func TestMemoryIsBounded(t *testing.T) {
	m := newMemory[int, int](10)
	for i := range 1000 {
		m.put(i, i)
		require.LessOrEqual(t, len(m.old)+len(m.new), 10)
	}
	for i := 995; i < 1000; i++ { // the newer half is kept
		v, ok := m.get(i)
		require.True(t, ok)
		require.Equal(t, i, v)
	}
	require.False(t, m.first(999, 7))
	require.True(t, m.first(7, 999))
	v, ok := m.take(999)
	require.Equal(t, 999, v)
	require.True(t, ok)
	_, ok = m.get(999)
	require.False(t, ok)
}
