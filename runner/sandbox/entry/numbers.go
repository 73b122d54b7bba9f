//go:build linux && (amd64 || arm64)

package entry

// Numbers and flags that package syscall does not have. Those of calls are the
// same on every architecture.
const (
	sysOpenTree              = 428
	sysMoveMount             = 429
	sysCloseRange            = 436
	sysMountSetattr          = 442
	sysLandlockCreateRuleset = 444
	sysLandlockAddRule       = 445
	sysLandlockRestrictSelf  = 446

	atCWD              = ^uintptr(99) // AT_FDCWD, -100
	atSymlinkNofollow  = 0x100
	atEmptyPath        = 0x1000
	atRecursive        = 0x8000
	attributesSize     = 32
	openTreeClone      = 1
	moveMountEmptyPath = 4
	closeRangeCloexec  = 4
	lastDescriptor     = 1<<32 - 1
	oPath              = 0x200000
	pollIn             = 1

	prSetPdeathsig  = 1
	prSetSeccomp    = 22
	prCapbsetDrop   = 24
	prSetSecurebits = 28
	prSetNoNewPrivs = 38
	prCapAmbient    = 47

	seccompModeFilter   = 2
	capAmbientClearAll  = 4
	capabilityVersion3  = 0x20080522
	landlockPathBeneath = 1
	landlockNetPort     = 2
)
