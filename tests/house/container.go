package house

// The names under which a test binary is a process of another kind of host. Its
// TestMain then calls Become.
const (
	Container     = "container"                  // a default container
	BareContainer = "container-without-landlock" // the same on a kernel without Landlock
	Permitted     = "only-bubblewrap-permitted"  // bubblewrap alone may make namespaces
	Clerk         = "clerk"                      // who decides about that
)
