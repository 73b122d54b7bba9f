package manifests

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/user"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

//go:embed tiers/*.yaml runners/*.yaml
var shipped embed.FS

// The folders of a set of manifests.
const (
	tierFolder   = "tiers"
	runnerFolder = "runners"
	extension    = ".yaml"
)

// mostBytes is the size limit of one file.
const mostBytes = 8 << 20

// source is one file, by its name without the extension.
type source struct {
	name   string
	file   string // as faults and origins name it
	text   []byte
	faults Faults // why it cannot be read; the text is then not to be used
}

// folder is a set of files: the shipped ones, or an operator's.
type folder struct {
	tiers, runners []source
	faults         Faults // of the folders themselves
}

// Shipped gives the text of a shipped file, such as tiers/guest.yaml, for an
// operator to start from.
func Shipped(name string) ([]byte, error) {
	text, err := shipped.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("shipped manifest: %w", err)
	}
	return text, nil
}

// readShipped reads what is part of the program.
func readShipped() folder {
	read := func(dir string) (out []source) {
		entries, err := shipped.ReadDir(dir)
		if err != nil {
			return []source{{name: dir, faults: Faults{{File: "shipped:" + dir, What: err.Error(), Right: "a whole program"}}}}
		}
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			text, err := shipped.ReadFile(name)
			s := source{name: strings.TrimSuffix(e.Name(), extension), file: "shipped:" + name, text: text}
			if err != nil {
				s.faults = Faults{{File: s.file, What: err.Error(), Right: "a whole program"}}
			}
			out = append(out, s)
		}
		return out
	}
	return folder{tiers: read(tierFolder), runners: read(runnerFolder)}
}

// readFolder reads an operator's folder. A folder that is named but not there
// is a fault, never the same as none.
func readFolder(dir string) folder {
	f, there := readTierFolder(dir)
	if there {
		f.runners = f.read(filepath.Join(dir, runnerFolder))
	}
	return f
}

// readTierFolder reads all but the runner files.
func readTierFolder(dir string) (f folder, there bool) {
	entries, faults := list(dir)
	f.faults = append(f.faults, faults...)
	if entries == nil && len(faults) > 0 {
		return f, false
	}
	for _, e := range entries {
		if why, right := misplaced(e); why != "" {
			f.faults = append(f.faults, Fault{File: filepath.Join(dir, e.Name()), What: why, Right: right})
		}
	}
	f.tiers = f.read(filepath.Join(dir, tierFolder))
	return f, true
}

// misplaced finds what its author will believe to be in force, but is not read.
func misplaced(e fs.DirEntry) (what, right string) {
	name := e.Name()
	switch {
	case strings.HasPrefix(name, "."), name == tierFolder, name == runnerFolder:
		return "", ""
	case strings.HasSuffix(name, extension), strings.HasSuffix(name, ".yml"):
		return "a manifest outside of the folders that are read", "the file in " + tierFolder + "/ or " + runnerFolder + "/"
	case e.IsDir() && suggest(name, []string{tierFolder, runnerFolder}) != "":
		return "this folder is not read", suggest(name, []string{tierFolder, runnerFolder}) + "/"
	}
	return "", ""
}

// list gives the entries of a folder, and a fault where others can write it.
func list(dir string) ([]fs.DirEntry, Faults) {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, Faults{{File: dir, What: "there is no such folder", Right: "an existing folder, or no folder named for the shipped manifests"}}
	}
	if err != nil {
		return nil, Faults{{File: dir, What: "cannot be read: " + cause(err), Right: "a folder that the bot's user can read"}}
	}
	if !info.IsDir() {
		return nil, Faults{{File: dir, What: "is not a folder", Right: "a folder with tiers/ and runners/"}}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, Faults{{File: dir, What: "cannot be read: " + cause(err), Right: "a folder that the bot's user can read"}}
	}
	if f, bad := openToOthers(dir, dir, info, filepath.Base(dir) == runnerFolder); bad {
		return entries, Faults{f}
	}
	return entries, nil
}

// read reads the manifests of one of the two folders; either may be absent.
// Names with a leading dot are not looked at: editors and ConfigMap mounts put
// their own there.
func (f *folder) read(dir string) (out []source) {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	private := filepath.Base(dir) == runnerFolder
	entries, faults := list(dir)
	f.faults = append(f.faults, faults...)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			continue
		}
		file := filepath.Join(dir, e.Name())
		name, ok := strings.CutSuffix(e.Name(), extension)
		if fault, bad := misnamed(file, name, ok, private); bad {
			f.faults = append(f.faults, fault)
			continue
		}
		s := source{name: name, file: file}
		s.text, s.faults = readFile(file, private)
		out = append(out, s)
	}
	return out
}

func misnamed(file, name string, yaml, private bool) (Fault, bool) {
	switch {
	case private && !(yaml && runnerName(name)):
		return Fault{File: file, What: "this file is not read", Right: "a name of small letters, digits and - that ends in " + extension}, true
	case !private && !(yaml && contains(tierWords(), name)):
		base := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
		return Fault{File: file, What: "this file is not read", Right: oneOf(base, tierWords()) + ", each with " + extension}, true
	}
	return Fault{}, false
}

func runnerName(s string) bool {
	return len(s) <= 32 && only(s, "abcdefghijklmnopqrstuvwxyz0123456789-") && !strings.HasPrefix(s, "-")
}

// readFile reads one regular file of bounded size, reached directly or by
// symbolic links. It does not wait for a pipe that somebody put there.
func readFile(file string, private bool) ([]byte, Faults) {
	fault := func(what, right string) ([]byte, Faults) { return nil, Faults{{File: file, What: what, Right: right}} }
	f, err := openPlain(file)
	if err != nil {
		return fault("cannot be read: "+cause(err), "a file that the bot's user can read")
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return fault("cannot be read: "+cause(err), "a file that the bot's user can read")
	}
	if !info.Mode().IsRegular() {
		return fault("is not a regular file", "a regular file")
	}
	if bad, open := openToOthers(file, file, info, private); open {
		return nil, Faults{bad}
	}
	text, err := io.ReadAll(io.LimitReader(f, mostBytes+1))
	if err != nil {
		return fault("cannot be read: "+cause(err), "a file that the bot's user can read")
	}
	if len(text) > mostBytes {
		return fault("is larger than 8 MiB", "a smaller file")
	}
	return text, nil
}

// cause gives the reason of a failed call without the path that is named anyway.
func cause(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// thisHost asks the real machine. The folder of the manifests and the home of
// the bot's user are private; the latter comes from the user data base.
func thisHost(dir string) host {
	h := host{real: realPath}
	for _, p := range []string{dir, homeOf(os.Getuid())} {
		if p == "" {
			continue
		}
		if abs, err := filepath.Abs(p); err == nil && abs != "/" {
			h.private = append(h.private, abs)
			if target, err := filepath.EvalSymlinks(abs); err == nil && target != abs && target != "/" {
				h.private = append(h.private, target)
			}
		}
	}
	return h
}

func homeOf(uid int) string {
	u, err := user.LookupId(strconv.Itoa(uid))
	if err != nil {
		return "" // a user without an entry has no home
	}
	return u.HomeDir
}

func realPath(p string) (target string, socket, exists bool) {
	target, err := filepath.EvalSymlinks(p)
	if err != nil {
		return "", false, false
	}
	info, err := os.Lstat(target)
	return target, err == nil && info.Mode()&fs.ModeSocket != 0, true
}
