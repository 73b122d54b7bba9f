//go:build unix && !linux

package manifests

func readOnlyMount(string) bool { return false }
