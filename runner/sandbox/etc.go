//go:build linux && (amd64 || arm64)

package sandbox

import (
	"strconv"

	"parlour/runner/policy"
	"parlour/runner/sandbox/entry"
)

// etc writes the few files that programs look up. There is no resolv.conf: the
// box has no name server to ask.
func (p *view) etc() {
	p.folders("/etc", -1)
	for i, text := range etcTexts(p.uid) {
		p.add(entry.File, []int64{0o444, -1, -1}, rel(generated[i]), text)
	}
}

// etcTexts gives the contents of the generated files for the run's user.
func etcTexts(uid int) [len(generated)]string {
	id := itoa(int64(uid))
	return [...]string{
		"root:x:0:0:root:/:/usr/sbin/nologin\nagent:x:" + id + ":" + id + ":agent:" + policy.HomeDir + ":/bin/sh\n",
		"root:x:0:\nagent:x:" + id + ":\n",
		"127.0.0.1 localhost\n",
		"passwd: files\ngroup: files\nhosts: files\n",
	}
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
