package discord

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// state is what is known of the connection right now.
type state struct {
	mu        sync.Mutex
	user      string // the bot's own id, kept over reconnects
	isReady   bool
	why       string // why it is not ready
	lastFrame time.Time
	lastEvent time.Time
}

func (s *state) self() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.user
}

// up notes READY or RESUMED. The id is empty on RESUMED.
func (s *state) up(user string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if user != "" {
		s.user = user
	}
	s.isReady = s.user != ""
}

func (s *state) down(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isReady, s.why = false, why
}

func (s *state) isUp() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.isReady
}

func (s *state) frame(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastFrame = now
}

func (s *state) event(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lastEvent = now
}

func (s *state) silentFor(now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Sub(s.lastFrame)
}

// ready says whether the bot hears, with the ages of the last frame and the last
// event. A server without events is no fault: frames include heartbeats.
func (s *state) ready(now time.Time, silence time.Duration) (bool, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.isReady {
		if s.why == "" {
			return false, "discord: not connected yet"
		}
		return false, "discord: not connected: " + s.why
	}
	age := now.Sub(s.lastFrame)
	if age > silence {
		return false, fmt.Sprintf("discord: nothing heard for %s", age.Round(time.Second))
	}
	return true, fmt.Sprintf("discord: connected; last frame %s ago, last event %s ago",
		age.Round(time.Second), now.Sub(s.lastEvent).Round(time.Second))
}

// budget bounds new sessions: Discord resets the token of a bot that makes more
// than a thousand a day.
type budget struct {
	gap  time.Duration
	used []time.Time
}

const identifiesPerDay = 800

func newBudget(gap time.Duration) *budget { return &budget{gap: gap} }

// wait says how long the next session has to wait.
func (b *budget) wait(now time.Time) time.Duration {
	b.used = slices.DeleteFunc(b.used, func(t time.Time) bool { return now.Sub(t) >= 24*time.Hour })
	if len(b.used) == 0 {
		return 0
	}
	wait := b.used[len(b.used)-1].Add(b.gap).Sub(now)
	if len(b.used) >= identifiesPerDay {
		wait = max(wait, b.used[0].Add(24*time.Hour).Sub(now))
	}
	return max(wait, 0)
}

func (b *budget) spend(now time.Time) { b.used = append(b.used, now) }
