package ask

// The kinds of event that belong to a grant and to no question. Their data is
// the tiers.Grant.
const (
	EventGranted = "grant/made"
	EventRevoked = "grant/revoked"
)
