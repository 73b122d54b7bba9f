package journeys_test

// The people and places of the journeys.
const (
	guildID   = "900000000000000001"
	channelID = "700000000000000001"
	guestID   = "333333333333333333"
	ownerID   = "111111111111111111"
	hallID    = "C0HALL0001"
	memberID  = "U0TEAM0001"
)
