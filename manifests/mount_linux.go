package manifests

import "syscall"

// readOnlyMount says whether nobody can write below a path, whatever its
// permission bits say: a mounted ConfigMap has mode 0777.
func readOnlyMount(path string) bool {
	const readOnly = 1 // ST_RDONLY
	var s syscall.Statfs_t
	return syscall.Statfs(path, &s) == nil && s.Flags&readOnly != 0
}
