package discord

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"parlour/tiers"
)

// FuzzConvert feeds whatever a gateway could send: nothing panics, nobody but a
// person gets through, and ids are ids.
func FuzzConvert(f *testing.F) {
	f.Add([]byte(`{"id":"5","channel_id":"6","guild_id":"7","author":{"id":"8"},"content":"<@1> hi","mentions":[{"id":"1"}]}`))
	f.Add([]byte(`{"id":"5","channel_id":"6","guild_id":"7","author":{"id":"8"},"member":{"roles":["9","x","7"]},"content":"<@1> hi","mentions":[{"id":"1"}]}`))
	f.Add([]byte(`{"id":"5","channel_id":"6","author":{"id":"8"},"content":"","type":19,"referenced_message":null,"message_snapshots":[{}]}`))
	f.Add([]byte(`{"id":"5","channel_id":"6","author":{"id":"8","bot":true},"webhook_id":"9","content":"x","mentions":[null]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, err := decode(raw)
		if err != nil {
			return
		}
		for _, at := range []channel{{}, {Type: channelPublicThread, Parent: "3", known: true}, {known: true, whole: true}} {
			m, drop := convert("1", e, at)
			if drop != "" {
				require.Zero(t, m)
				continue
			}
			require.Equal(t, tiers.Person, m.Identity.Kind)
			require.NotEqual(t, "1", m.Identity.User)
			require.NotEmpty(t, m.Text)
			require.True(t, m.Place.Most <= tiers.Guest || m.Place.Direct || at.whole)
			for _, role := range m.Identity.Roles {
				require.True(t, snowflake(role) && m.Identity.Member && e.GuildID != "" && role != e.GuildID)
			}
			to, err := parseAddress(m.ReplyTo)
			require.NoError(t, err)
			require.Equal(t, m.Place.Channel, to.channel)
		}
	})
}

func TestWhatIsKnownOfAChannelGrowsOld(t *testing.T) {
	now := time.Now()
	require.True(t, seen{channel{known: true}, now.Add(-mostAge / 2)}.fresh(now))
	require.False(t, seen{channel{known: true}, now.Add(-mostAge)}.fresh(now))
	require.False(t, seen{}.fresh(now), "nothing is known")
}

func TestIDsHoldTheirTime(t *testing.T) {
	require.Equal(t, "2016-04-30T11:18:25.796Z", created("175928847299117063").Format(time.RFC3339Nano))
	require.Zero(t, created("x"))
}

func TestBudgetOfSessions(t *testing.T) {
	b := newBudget(5 * time.Second)
	now := time.Now()
	require.Zero(t, b.wait(now))
	b.spend(now)
	require.Equal(t, 5*time.Second, b.wait(now))
	require.Zero(t, b.wait(now.Add(6*time.Second)))
	for range identifiesPerDay {
		b.spend(now.Add(time.Hour))
	}
	require.Greater(t, b.wait(now.Add(2*time.Hour)), 20*time.Hour)
	require.Zero(t, b.wait(now.Add(25*time.Hour)))
}

func TestRoutesShareTheLimitOfTheirChannel(t *testing.T) {
	require.Equal(t, "channels/1/messages", bucket("POST", "/channels/1/messages"))
	require.Equal(t, "channels/1/messages", bucket("GET", "/channels/1/messages?limit=100&after=2"))
	require.Equal(t, "channels/1/messages/reactions", bucket("PUT", "/channels/1/messages/2/reactions/%F0/@me"))
	require.Equal(t, "channels/1/messages/threads", bucket("POST", "/channels/1/messages/2/threads"))
	require.Equal(t, "PATCH channels/1/messages", bucket("PATCH", "/channels/1/messages/2"))
	require.Equal(t, "DELETE channels/1/messages", bucket("DELETE", "/channels/1/messages/2"))
	require.Equal(t, "channels/1", bucket("GET", "/channels/1"))
	require.Equal(t, 5*time.Second, seconds("NaN", 5*time.Second))
	require.Equal(t, 24*time.Hour, seconds("1e300", 0))
}
