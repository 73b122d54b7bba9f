//go:build amd64 || arm64

package probe

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"parlour/runner/policy"
)

// listeners sets up the services that must stay out of reach.
func listeners(s *stage, ctx context.Context) {
	s.TCP4 = s.listen("tcp4", "tcp4", "127.0.0.1:0")
	s.TCP6 = s.listen("tcp6", "tcp6", "[::1]:0")
	s.UDP4 = s.hear("udp4", "udp4", "127.0.0.1:0")
	s.UDP6 = s.hear("udp6", "udp6", "[::1]:0")
	twin := "127.0.0.2:" + port(policy.BrokerAddr)
	if s.listen("twin", "tcp4", twin) == "" && strings.Contains(s.missing["twin"], unix.EADDRINUSE.Error()) {
		delete(s.missing, "twin") // then somebody else's service answers there
	}
	s.BrokerTwin = twin
	s.note("tcphost", errAbsent)
	addresses, _ := net.InterfaceAddrs()
	for _, a := range addresses {
		prefix, err := netip.ParsePrefix(a.String())
		if err == nil && prefix.Addr().Is4() && prefix.Addr().IsGlobalUnicast() {
			delete(s.absent, "tcphost")
			s.TCPHost = s.listen("tcphost", "tcp4", prefix.Addr().String()+":0")
			break
		}
	}
	s.Abstract, s.AbstractGram = s.hidden("abstract"), s.hidden("abstractgram")
	s.listen("abstract", "unix", "@"+s.Abstract)
	s.hear("abstractgram", "unixgram", "@"+s.AbstractGram)
	if err := paths(s); err != nil {
		s.note("path", err)
		s.note("pathgram", err)
	}
	s.Nameserver = nameserver()
	s.note("nameserver", present(s.Nameserver != ""))
	interfaces, _ := net.Interfaces()
	for _, i := range interfaces {
		if i.Flags&net.FlagLoopback == 0 && !tunnelDefaults(i.Name) {
			s.network = append(s.network, i.Name)
		}
	}
	s.note("interfaces", present(len(s.network) > 0))
	knock(s, ctx)
}

// longestPath is the most that fits into the address of a local socket.
const longestPath = 107

// paths makes the sockets that have a path.
func paths(s *stage) error {
	s.Path, s.PathGram = filepath.Join(s.Folder, folderSockets, socketStream), filepath.Join(s.Folder, folderSockets, socketGram)
	if len(s.Path) > longestPath || len(s.PathGram) > longestPath {
		return errors.New("the temporary folder's path is too long for a socket")
	}
	in, seal, err := s.sockets()
	if err != nil {
		return err
	}
	s.listen("path", "unix", filepath.Join(in, socketStream))
	s.hear("pathgram", "unixgram", filepath.Join(in, socketGram))
	return seal()
}

// tunnelDefaults says whether the kernel gives every network namespace this
// interface.
func tunnelDefaults(name string) bool {
	switch name {
	case "tunl0", "sit0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "ip6tnl0", "ip6gre0":
		return true
	}
	return false
}

// listen serves the secret to whoever connects, and keeps what they say.
func (s *stage) listen(target, network, address string) string {
	l, err := net.Listen(network, address)
	if err != nil {
		s.note(target, err)
		return ""
	}
	s.later(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go greet(s, c)
		}
	}()
	return l.Addr().String()
}

// longestWord is the most that a listener reads.
const longestWord = 256

func greet(s *stage, c net.Conn) {
	defer func() { _ = c.Close() }()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	line, _ := bufio.NewReader(io.LimitReader(c, longestWord)).ReadString('\n') // anybody may connect
	s.hit(line)
	_, _ = c.Write([]byte(s.secret))
}

// hear keeps what datagrams say.
func (s *stage) hear(target, network, address string) string {
	c, err := net.ListenPacket(network, address)
	if err != nil {
		s.note(target, err)
		return ""
	}
	s.later(func() { _ = c.Close() })
	s.drains = append(s.drains, func() {
		buf := make([]byte, longestWord)
		for {
			_ = c.SetReadDeadline(time.Now().Add(5 * time.Millisecond))
			n, _, err := c.ReadFrom(buf)
			if err != nil {
				return
			}
			s.hit(string(buf[:n]))
		}
	})
	return c.LocalAddr().String()
}

// collect takes what was sent so far. On one machine a datagram has arrived
// when its sender goes on.
func (s *stage) collect() {
	for _, d := range s.drains {
		d()
	}
}

// knock looks all the time for a service that the run may offer.
func knock(s *stage, ctx context.Context) {
	l, err := net.Listen("tcp4", loopback(0))
	if err != nil {
		s.note("knock", err)
		return
	}
	s.Knock = l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	ctx, stop := context.WithCancel(ctx)
	s.later(stop)
	go func() {
		ticker := time.NewTicker(20 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			c, err := net.DialTimeout("tcp4", loopback(s.Knock), time.Second)
			if err != nil {
				continue
			}
			_ = c.SetDeadline(time.Now().Add(time.Second))
			buf := make([]byte, longestWord)
			n, _ := c.Read(buf)
			s.hit(string(buf[:n]))
			_ = c.Close()
		}
	}()
}
