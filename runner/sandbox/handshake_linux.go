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

// pair makes the status socket: the bot's end and the child's.
func pair() (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "status"), os.NewFile(uintptr(fds[1]), "child status")
	defer ours.Close()
	conn, err := net.FileConn(ours)
	if err != nil {
		_ = theirs.Close()
		return nil, nil, err
	}
	return conn.(*net.UnixConn), theirs, nil
}

// handshake reads what the child says until its end closes, which is when it
// has become the program. It gives the listener that was passed, if any.
func handshake(status *net.UnixConn) (net.Listener, error) {
	var said []byte
	var passed []int
	buf, oob := make([]byte, 4096), make([]byte, unix.CmsgSpace(4))
	for {
		n, oobn, _, _, err := status.ReadMsgUnix(buf, oob)
		passed = append(passed, descriptorsIn(oob[:oobn])...)
		said = append(said, buf[:n]...)
		if errors.Is(err, io.EOF) || err == nil && n == 0 {
			break
		}
		if err != nil {
			closeAll(passed)
			return nil, &StartError{"listen to the child", err}
		}
	}
	if err := outcome(said); err != nil {
		closeAll(passed)
		return nil, err
	}
	return listener(passed)
}

// outcome reads the child's whole talk: perhaps a passed socket, then that it is
// ready, and a failure if there was one.
func outcome(said []byte) error {
	said = bytes.TrimPrefix(said, []byte{entry.Passing})
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

func listener(passed []int) (net.Listener, error) {
	if len(passed) == 0 {
		return nil, nil
	}
	if len(passed) > 1 {
		closeAll(passed)
		return nil, &StartError{"receive the listener", fmt.Errorf("the child passed %d sockets", len(passed))}
	}
	file := os.NewFile(uintptr(passed[0]), "listener") // owns the descriptor from here on
	defer file.Close()
	l, err := net.FileListener(file)
	if err != nil {
		return nil, &StartError{"receive the listener", err}
	}
	return l, nil
}

func descriptorsIn(oob []byte) []int {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	var fds []int
	for _, m := range messages {
		if got, err := unix.ParseUnixRights(&m); err == nil {
			fds = append(fds, got...)
		}
	}
	return fds
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}
