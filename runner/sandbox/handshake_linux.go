//go:build amd64 || arm64

package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"

	"golang.org/x/sys/unix"

	"parlour/runner/sandbox/entry"
)

// pair makes the status socket: the bot's end and the child's. The kernel says
// on it who speaks, under the id that the bot knows.
func pair() (*net.UnixConn, *os.File, error) {
	ours, theirs, err := socketpair()
	if err != nil {
		return nil, nil, err
	}
	defer ours.Close()
	var conn net.Conn
	err = unix.SetsockoptInt(int(ours.Fd()), unix.SOL_SOCKET, unix.SO_PASSCRED, 1)
	if err == nil {
		conn, err = net.FileConn(ours)
	}
	if err != nil {
		_ = theirs.Close()
		return nil, nil, err
	}
	return conn.(*net.UnixConn), theirs, nil
}

func socketpair() (ours, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "ours"), os.NewFile(uintptr(fds[1]), "theirs"), nil
}

// talk is what a child has said on its status socket.
type talk struct {
	said     []byte
	listener net.Listener // that it passed, if any
	passed   int          // how many sockets
	who      insider      // who spoke last
}

// hear listens until the child's end closes, which is when it has become the
// program or is dead, or until it has said the mark, where that is not 0.
func (t *talk) hear(status *net.UnixConn, mark byte) error {
	buf, oob := make([]byte, 4096), make([]byte, unix.CmsgSpace(4)+unix.CmsgSpace(unix.SizeofUcred))
	for mark == 0 || !bytes.ContainsRune(t.said, rune(mark)) {
		n, oobn, _, _, err := status.ReadMsgUnix(buf, oob)
		n, oobn = max(n, 0), max(oobn, 0) // they are -1 where time ran out
		fds, pid := ancillary(oob[:oobn])
		if lerr := t.receive(fds); lerr != nil {
			return lerr
		}
		t.said = append(t.said, buf[:n]...)
		t.who.meet(pid)
		if errors.Is(err, io.EOF) || err == nil && n == 0 {
			return nil
		}
		if err != nil {
			return &StartError{"listen to the child", err}
		}
	}
	return nil
}

// receive takes the one socket that a child may pass.
func (t *talk) receive(fds []int) error {
	for _, fd := range fds {
		if t.passed++; t.passed > 1 {
			closeAll(fds)
			return &StartError{"receive the listener", fmt.Errorf("the child passed %d sockets", t.passed)}
		}
		file := os.NewFile(uintptr(fd), "listener") // owns the descriptor from here on
		l, err := net.FileListener(file)
		_ = file.Close()
		if err != nil {
			return &StartError{"receive the listener", err}
		}
		t.listener = l
	}
	return nil
}

// drop closes what was passed.
func (t *talk) drop() {
	if t.listener != nil {
		_ = t.listener.Close()
		t.listener = nil
	}
}

// waits says whether the child has done all but the last steps.
func (t *talk) waits() bool {
	return bytes.Equal(bytes.TrimPrefix(t.said, []byte{entry.Passing}), []byte{entry.Waiting})
}

// outcome reads the child's whole talk: perhaps a passed socket, perhaps that it
// waited, then that it is ready, and a failure if there was one.
func (t *talk) outcome() error {
	said := bytes.TrimPrefix(t.said, []byte{entry.Passing})
	said = bytes.TrimPrefix(said, []byte{entry.Waiting})
	rest, ready := bytes.CutPrefix(said, []byte{entry.Ready})
	if text, failed := bytes.CutPrefix(rest, []byte{entry.Failed}); failed {
		return failure(text)
	}
	if !ready || len(rest) > 0 {
		return &StartError{"start", errors.New("the child died before the program started")}
	}
	return nil
}

func failure(text []byte) error {
	parts := bytes.SplitN(text, []byte{0}, 3)
	if len(parts) != 3 {
		return &StartError{"start", errors.New("the child failed and did not say why")}
	}
	if errno, err := strconv.Atoi(string(parts[1])); err == nil && errno > 0 {
		return &StartError{string(parts[0]), unix.Errno(errno)}
	}
	return &StartError{string(parts[0]), errors.New(string(parts[2]))}
}

// ancillary gives the descriptors and the sender that came with a message.
func ancillary(oob []byte) (fds []int, pid int) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil, 0
	}
	for _, m := range messages {
		if got, err := unix.ParseUnixRights(&m); err == nil {
			fds = append(fds, got...)
		}
		if from, err := unix.ParseUnixCredentials(&m); err == nil {
			pid = int(from.Pid)
		}
	}
	return fds, pid
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}
