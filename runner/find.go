package runner

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Finder looks programs up in a fixed list of folders. It never searches a
// relative folder, so a planted program in the current folder is not found.
// Guarded by tests/journeys TestPlantedProgramsAreNotPicked.
type Finder struct {
	Dirs []string // absolute folders in order; others are ignored
	UID  int      // programs must belong to root or to this user
}

// NewFinder makes a Finder for the value of PATH and the folders in which
// installers put agent programs.
func NewFinder(path, home string, uid int) Finder {
	dirs := filepath.SplitList(path)
	if filepath.IsAbs(home) {
		for _, d := range []string{".local/bin", ".claude/local", ".npm-global/bin", ".bun/bin"} {
			dirs = append(dirs, filepath.Join(home, d))
		}
	}
	dirs = append(dirs, "/usr/local/bin", "/opt/homebrew/bin")
	return Finder{Dirs: slices.DeleteFunc(dirs, func(d string) bool { return !filepath.IsAbs(d) }), UID: uid}
}

// Find gives the absolute path, links resolved, of the first usable program of
// the given names, or why there is none.
func (f Finder) Find(names []string) (path, missing string) {
	missing = "not installed"
	for _, candidate := range f.candidates(names) {
		resolved, err := f.usable(candidate)
		if err == nil {
			return resolved, ""
		}
		if !errors.Is(err, fs.ErrNotExist) && missing == "not installed" {
			missing = fmt.Sprintf("found at %s, but %s", candidate, err)
		}
	}
	return "", missing
}

func (f Finder) candidates(names []string) []string {
	out := []string{}
	for _, name := range names {
		if filepath.IsAbs(name) {
			out = append(out, name)
			continue
		}
		if name == "" || strings.ContainsRune(name, filepath.Separator) {
			continue
		}
		for _, dir := range f.Dirs {
			out = append(out, filepath.Join(dir, name))
		}
	}
	return out
}

// usable follows links and says why the file cannot be run safely. A name that
// does not exist at all gives fs.ErrNotExist.
func (f Finder) usable(path string) (string, error) {
	if _, err := os.Lstat(path); err != nil {
		return "", fs.ErrNotExist
	}
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", errors.New("it is a link to nothing")
	}
	info, err := os.Stat(resolved)
	if err != nil {
		return "", errors.New("it cannot be read")
	}
	switch mode := info.Mode(); {
	case !mode.IsRegular():
		return "", errors.New("it is not a file")
	case mode.Perm()&0o111 == 0:
		return "", errors.New("it is not executable")
	case mode.Perm()&0o022 != 0:
		return "", fmt.Errorf("others can write it (mode %04o)", mode.Perm())
	}
	if uid, ok := ownerOf(info); ok && uid != 0 && uid != f.UID {
		return "", fmt.Errorf("it belongs to user %d, not to root or to the bot's user", uid)
	}
	if dir, err := os.Stat(filepath.Dir(resolved)); err != nil || dir.Mode().Perm()&0o002 != 0 && dir.Mode()&fs.ModeSticky == 0 {
		return "", fmt.Errorf("others can replace it in its folder %s", filepath.Dir(resolved))
	}
	return resolved, runnable(resolved)
}

// runnable checks that the kernel can start the file: a program for this kind
// of machine, or a script whose interpreter exists.
func runnable(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return errors.New("it cannot be read")
	}
	defer func() { _ = file.Close() }()
	head := make([]byte, 256)
	n, _ := io.ReadFull(file, head)
	head = head[:n]
	switch {
	case bytes.HasPrefix(head, []byte(elf.ELFMAG)):
		return rightMachine(file)
	case bytes.HasPrefix(head, []byte("#!")):
		return interpreter(head)
	case runtime.GOOS != "linux":
		return nil
	}
	return errors.New("it is neither a program nor a script with an interpreter line")
}

func rightMachine(r io.ReaderAt) error {
	f, err := elf.NewFile(r)
	if err != nil {
		return errors.New("it is a damaged program")
	}
	defer func() { _ = f.Close() }()
	want := map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}[runtime.GOARCH]
	if want != 0 && f.Machine != want {
		return fmt.Errorf("it is a program for another kind of machine (%s)", f.Machine)
	}
	return nil
}

func interpreter(head []byte) error {
	line, _, _ := bytes.Cut(head[2:], []byte("\n"))
	if bytes.HasSuffix(line, []byte("\r")) {
		return errors.New("its interpreter line ends in a carriage return")
	}
	fields := strings.Fields(string(line))
	if len(fields) == 0 {
		return errors.New("its interpreter line is empty")
	}
	if _, err := os.Stat(fields[0]); err != nil || !filepath.IsAbs(fields[0]) {
		return fmt.Errorf("its interpreter %s is missing", fields[0])
	}
	return nil
}
