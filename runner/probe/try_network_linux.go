//go:build amd64 || arm64

package probe

import (
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

func networkTrials() []trial {
	tcp := func(target string, at func(targets) string, protocol int) func(*intruder) said {
		return func(p *intruder) said { return connect(p, at(p.t), unix.SOCK_STREAM, protocol, target) }
	}
	list := []trial{}
	add := func(name, what, target string, try func(*intruder) said) {
		list = append(list, trial{Attempt: named(name, what), target: target, try: try, judge: heard(name)})
	}
	add("loopback-4", "Connect to a service on the host's IPv4 loopback address.", "tcp4", tcp("loopback-4", func(t targets) string { return t.TCP4 }, 0))
	add("loopback-6", "Connect to a service on the host's IPv6 loopback address.", "tcp6", tcp("loopback-6", func(t targets) string { return t.TCP6 }, 0))
	add("loopback-mapped", "Connect to it by an IPv4 address that is written as IPv6.", "tcp4", tcp("loopback-mapped", func(t targets) string { return "[::ffff:127.0.0.1]:" + port(t.TCP4) }, 0))
	add("loopback-any", "Connect to it by the address 0.0.0.0.", "tcp4", tcp("loopback-any", func(t targets) string { return "0.0.0.0:" + port(t.TCP4) }, 0))
	add("host-address", "Connect to a service on the host's own network address.", "tcphost", tcp("host-address", func(t targets) string { return t.TCPHost }, 0))
	add("broker-twin", "Connect to a service on the gateway's port at another address.", "twin", tcp("broker-twin", func(t targets) string { return t.BrokerTwin }, 0))
	list[len(list)-1].tells = true // where only the port is held, the text says: in part
	add("multipath", "Connect by Multipath TCP, which some walls do not see.", "tcp4", tcp("multipath", func(t targets) string { return t.TCP4 }, unix.IPPROTO_MPTCP))
	add("fast-open", "Connect by sending, which some walls do not see.", "tcp4", func(p *intruder) said { return send(p, p.t.TCP4, unix.SOCK_STREAM, unix.MSG_FASTOPEN, "fast-open") })
	add("datagram-4", "Send a datagram to the host's IPv4 loopback address.", "udp4", func(p *intruder) said { return send(p, p.t.UDP4, unix.SOCK_DGRAM, 0, "datagram-4") })
	add("datagram-6", "Send a datagram to the host's IPv6 loopback address.", "udp6", func(p *intruder) said { return send(p, p.t.UDP6, unix.SOCK_DGRAM, 0, "datagram-6") })
	add("abstract", "Connect to a local socket of the host that has a name and no path.", "abstract", func(p *intruder) said {
		return local(p, unix.SOCK_STREAM, "@"+p.t.Abstract, "abstract")
	})
	add("abstract-datagram", "Send a datagram to such a socket.", "abstractgram", func(p *intruder) said {
		return local(p, unix.SOCK_DGRAM, "@"+p.t.AbstractGram, "abstract-datagram")
	})
	add("path", "Connect to a local socket of the host by its path.", "path", func(p *intruder) said { return local(p, unix.SOCK_STREAM, p.t.Path, "path") })
	add("path-datagram", "Send a datagram to a local socket of the host by its path.", "pathgram", func(p *intruder) said {
		return local(p, unix.SOCK_DGRAM, p.t.PathGram, "path-datagram")
	})
	add("pair", "Send to a named local socket out of a pair of its own.", "abstractgram", sendFromPair)
	add("serve", "Offer a service that the host can reach.", "knock", serve)
	away := func(name, what, address string, kind int) {
		list = append(list, trial{Attempt: named(name, what), try: func(p *intruder) said { return leaves(p, address, kind) }})
	}
	away("internet-4", "Send a packet to the IPv4 internet.", "192.0.2.1:443", unix.SOCK_STREAM)
	away("internet-6", "Send a packet to the IPv6 internet.", "[2001:db8::1]:443", unix.SOCK_STREAM)
	away("metadata", "Send a packet to the address at which clouds hand out credentials.", "169.254.169.254:80", unix.SOCK_STREAM)
	away("private-network", "Send a packet to a private network.", "10.255.255.1:22", unix.SOCK_STREAM)
	away("internet-datagram", "Send a datagram to the internet.", "192.0.2.1:443", unix.SOCK_DGRAM)
	list = append(list,
		trial{Attempt: named("name-server", "Ask the host's name server."), target: "nameserver", try: func(p *intruder) said { return leaves(p, p.t.Nameserver, unix.SOCK_DGRAM) }},
		trial{Attempt: named("host-interfaces", "Learn which network interfaces the host has."), target: "interfaces", try: func(p *intruder) said {
			all, err := net.Interfaces()
			if err != nil {
				return said{Why: err.Error()}
			}
			names := []string{}
			for _, i := range all {
				names = append(names, i.Name)
			}
			return got(strings.Join(names, "\n"))
		}, judge: showsInterfaces})
	return list
}

// socketTrials make a socket of each kind that is no way to the gateway.
func socketTrials() []trial {
	kind := func(name, what string, domain, typ, protocol int) trial {
		return trial{Attempt: named(name, what), try: func(*intruder) said {
			fd, err := unix.Socket(domain, typ|unix.SOCK_CLOEXEC, protocol)
			if err == unix.EAFNOSUPPORT || err == unix.EPROTONOSUPPORT || err == unix.ESOCKTNOSUPPORT {
				return none(err)
			}
			return refused(closeIf(uintptr(fd), err))
		}}
	}
	return []trial{
		kind("netlink", "Make a socket that talks to the kernel about networks.", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_ROUTE),
		kind("events", "Make a socket that hears of the host's devices.", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_KOBJECT_UEVENT),
		kind("audit", "Make a socket that talks to the kernel's audit.", unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_AUDIT),
		kind("packet", "Make a socket that hears every packet.", unix.AF_PACKET, unix.SOCK_RAW, 0),
		kind("raw", "Make a socket that sends packets of any form.", unix.AF_INET, unix.SOCK_RAW, unix.IPPROTO_ICMP),
		kind("ping", "Make a socket that pings.", unix.AF_INET, unix.SOCK_DGRAM, unix.IPPROTO_ICMP),
		kind("sctp", "Make an SCTP socket.", unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_SCTP),
		kind("machine", "Make a socket to the machine below this one.", unix.AF_VSOCK, unix.SOCK_STREAM, 0),
		kind("crypto", "Make a socket to the kernel's ciphers.", unix.AF_ALG, unix.SOCK_SEQPACKET, 0),
		kind("express", "Make a socket to a network card's queues.", unix.AF_XDP, unix.SOCK_RAW, 0),
		kind("local", "Make a local socket.", unix.AF_UNIX, unix.SOCK_STREAM, 0),
		{Attempt: named("other", "Make a socket of any other family."), try: func(*intruder) said {
			known := []int{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK, unix.AF_PACKET, unix.AF_VSOCK, unix.AF_ALG, unix.AF_XDP}
			for domain := range 47 {
				if slices.Contains(known, domain) {
					continue
				}
				for _, typ := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_RAW, unix.SOCK_SEQPACKET, unix.SOCK_RDM} {
					if fd, err := unix.Socket(domain, typ|unix.SOCK_CLOEXEC, 0); err == nil {
						_ = unix.Close(fd)
						return did("family %d, kind %d", domain, typ)
					}
				}
			}
			return said{Why: "there is none"}
		}},
	}
}

// sent is what the intruder says where only a listener can tell the success.
const sent = "it was sent"

// heard asks the listeners. A datagram may leave without anybody to hear it.
func heard(name string) func(*stage, said) (bool, string) {
	return func(s *stage, a said) (bool, string) {
		if s.heard(name) || a.Why == sent && soon(func() bool { return s.heard(name) }) {
			return true, "the host's service heard it"
		}
		return a.Did, a.Why
	}
}

func port(address string) string {
	_, p, _ := net.SplitHostPort(address)
	return p
}

// address turns "host:port" into the kernel's form.
func address(at string) (int, unix.Sockaddr, error) {
	a, err := netip.ParseAddrPort(at)
	if err != nil {
		return 0, nil, err
	}
	if a.Addr().Is4() {
		return unix.AF_INET, &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}, nil
	}
	return unix.AF_INET6, &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}, nil
}

// connect connects, says which attempt it is, and reads the answer.
func connect(p *intruder, at string, kind, protocol int, name string) said {
	domain, to, err := address(at)
	if err != nil {
		return void("%v", err)
	}
	fd, err := unix.Socket(domain, kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, protocol)
	if err != nil {
		return refused(err)
	}
	defer func() { _ = unix.Close(fd) }()
	return converse(p, fd, to, name)
}

// answerTime bounds the wait for an answer of a service on the same machine.
const answerTime = 500 * time.Millisecond

func converse(p *intruder, fd int, to unix.Sockaddr, name string) said {
	err := unix.Connect(fd, to)
	if err == unix.EINPROGRESS {
		_ = await(fd, unix.POLLOUT)
		if code, serr := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR); serr == nil && code != 0 {
			err = unix.Errno(code)
		} else {
			err = nil
		}
	}
	if err != nil {
		return refused(err)
	}
	if _, err := unix.Write(fd, []byte(p.sign(name)+"\n")); err != nil {
		return did("it connected: %v", err)
	}
	_ = await(fd, unix.POLLIN)
	return said{Did: true, Got: drain(fd), Why: "somebody answers there"}
}

func await(fd int, event int16) error {
	_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: event}}, int(answerTime/time.Millisecond))
	return err
}

// send sends without connecting.
func send(p *intruder, at string, kind, flags int, name string) said {
	domain, to, err := address(at)
	if err != nil {
		return void("%v", err)
	}
	fd, err := unix.Socket(domain, kind|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return refused(err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Sendto(fd, []byte(p.sign(name)+"\n"), flags, to); err != nil {
		return refused(err)
	}
	return said{Why: sent}
}

func local(p *intruder, kind int, name, attempt string) said {
	fd, err := unix.Socket(unix.AF_UNIX, kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return refused(err)
	}
	defer func() { _ = unix.Close(fd) }()
	return converse(p, fd, &unix.SockaddrUnix{Name: name}, attempt)
}

func sendFromPair(p *intruder) said {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return refused(err)
	}
	defer func() { _, _ = unix.Close(pair[0]), unix.Close(pair[1]) }()
	return refused(unix.Sendto(pair[0], []byte(p.sign("pair")+"\n"), 0, &unix.SockaddrUnix{Name: "@" + p.t.AbstractGram}))
}

// serve waits for the host to knock.
func serve(p *intruder) said {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return refused(err)
	}
	defer func() { _ = unix.Close(fd) }()
	if err := unix.Bind(fd, &unix.SockaddrInet4{Port: p.t.Knock, Addr: [4]byte{127, 0, 0, 1}}); err == unix.EADDRINUSE {
		return void("%v", err) // somebody of the host has taken the port
	} else if err != nil {
		return said{Why: err.Error()}
	}
	if err := unix.Listen(fd, 1); err != nil {
		return said{Why: err.Error()}
	}
	_ = await(fd, unix.POLLIN)
	in, _, err := unix.Accept4(fd, unix.SOCK_CLOEXEC)
	if err != nil {
		return said{Why: "nobody knocked"}
	}
	_, _ = unix.Write(in, []byte(p.sign("serve")))
	_ = unix.Close(in)
	return did("somebody of the host knocked") // whoever it was: nobody of the run is there to do it
}

// leaves tries to get one packet out. An attempt that is under way counts.
func leaves(p *intruder, at string, kind int) said {
	domain, to, err := address(at)
	if err != nil {
		return void("%v", err)
	}
	fd, err := unix.Socket(domain, kind|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return refused(err)
	}
	defer func() { _ = unix.Close(fd) }()
	err = unix.Connect(fd, to)
	if err == unix.EINPROGRESS {
		return did("a packet was sent")
	}
	if err == nil && kind == unix.SOCK_DGRAM {
		_, err = unix.Write(fd, []byte("parlour"))
	}
	return refused(err)
}

// nameserver gives the first name server of the host's settings.
func nameserver() string {
	text, _ := os.ReadFile("/etc/resolv.conf")
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 2 || f[0] != "nameserver" {
			continue
		}
		if a, err := netip.ParseAddr(f[1]); err == nil && a.Zone() == "" {
			return netip.AddrPortFrom(a, 53).String()
		}
	}
	return ""
}

func loopback(port int) string { return "127.0.0.1:" + strconv.Itoa(port) }
