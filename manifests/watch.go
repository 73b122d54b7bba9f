package manifests

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Watch waits for changes of files. Word of the kernel makes it quick, a poll is
// the net under it where there is none, as on network file systems.
type Watch struct {
	Dir   string          // a manifests folder
	Also  string          // another folder; empty: none
	Ask   <-chan struct{} // asks for a look at once
	Quiet time.Duration   // how long nothing may change before a look; 0: 300 ms
	Most  time.Duration   // the longest wait where changes do not end; 0: 2 s
	Poll  time.Duration   // between two looks without a reason; 0: 10 s
	// Deaf is called where the kernel gives no word, and the poll alone is left.
	Deaf func(error)
}

// Serve calls look at once and whenever something may have changed, until ctx
// ends. Where look gives false it is called again soon. What happens during a look
// leads to another one.
// Guarded by tests/contract TestEveryWayOfChangingAManifestIsSeen.
func (w Watch) Serve(ctx context.Context, look func() bool) {
	w.complete()
	for ctx.Err() == nil {
		l := w.listen() // before the look, so that no change falls between the two
		wait := w.Poll
		if !look() {
			wait = w.Quiet
		}
		if w.heard(ctx, l, wait) {
			w.settle(ctx, l)
		}
		l.close()
	}
}

func (w *Watch) complete() {
	for _, d := range []struct {
		of  *time.Duration
		def time.Duration
	}{{&w.Quiet, 300 * time.Millisecond}, {&w.Most, 2 * time.Second}, {&w.Poll, 10 * time.Second}} {
		if *d.of <= 0 {
			*d.of = d.def
		}
	}
}

// listener is word from the kernel. The zero listener hears nothing.
type listener struct {
	watcher *fsnotify.Watcher
	events  <-chan fsnotify.Event
	errors  <-chan error
}

// listen is begun anew for each wait: a folder may be another one by the same
// name, as after the swap of a symbolic link.
func (w *Watch) listen() listener {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		w.deaf(err)
		return listener{}
	}
	for _, dir := range w.folders() {
		if err := watcher.Add(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			w.deaf(err)
		}
	}
	return listener{watcher, watcher.Events, watcher.Errors}
}

func (w *Watch) deaf(err error) {
	if w.Deaf != nil {
		w.Deaf(err)
	}
}

// folders are those in which a change can be one of the tier files: also the
// folders in which links end.
func (w *Watch) folders() []string {
	tiers := filepath.Join(w.Dir, tierFolder)
	all := []string{w.Dir, tiers}
	if w.Also != "" {
		all = append(all, w.Also)
	}
	entries, err := os.ReadDir(tiers)
	if err != nil {
		return all
	}
	for _, e := range entries {
		if e.Type()&os.ModeSymlink == 0 {
			continue
		}
		if target, err := filepath.EvalSymlinks(filepath.Join(tiers, e.Name())); err == nil && !contains(all, filepath.Dir(target)) {
			all = append(all, filepath.Dir(target))
		}
	}
	return all
}

// heard waits, and says whether there was word of a change.
func (w *Watch) heard(ctx context.Context, l listener, most time.Duration) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-l.events:
		return true
	case <-l.errors: // words were lost, perhaps
		return true
	case <-w.Ask:
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// settle waits until nothing has changed for a while, so that a file is not read
// while it is written, but not for ever.
func (w *Watch) settle(ctx context.Context, l listener) {
	end := time.NewTimer(w.Most)
	defer end.Stop()
	quiet := time.NewTimer(w.Quiet)
	defer quiet.Stop()
	for {
		select {
		case <-l.events:
			quiet.Reset(w.Quiet)
		case <-l.errors:
			quiet.Reset(w.Quiet)
		case <-quiet.C:
			return
		case <-end.C:
			return
		case <-w.Ask:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (l listener) close() {
	if l.watcher != nil {
		_ = l.watcher.Close()
	}
}
