package main

import (
	"bytes"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAside(t *testing.T) {
	for name, c := range map[string]struct {
		work func()
		log  string
	}{
		"it ends":    {func() {}, ""},
		"it panics":  {func() { panic("no such thing") }, `level=ERROR msg="escape battery" err="panic: no such thing" stack=`},
		"out of row": {func() { _ = []int{}[len(t.Name())] }, "index out of range"},
	} {
		var log bytes.Buffer
		require.NoError(t, aside(slog.New(slog.NewTextHandler(&log, nil)), "escape battery", c.work)(), name)
		require.Contains(t, log.String(), c.log, name)
		require.Equal(t, c.log == "", log.Len() == 0, name)
	}
}
