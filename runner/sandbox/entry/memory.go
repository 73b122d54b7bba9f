//go:build linux && (amd64 || arm64)

package entry

import "unsafe"

// memory holds what the calls point to. It grows in blocks that never move, and
// lives as long as the value does.
type memory struct{ blocks [][]byte }

const blockSize = 32 << 10

// room gives n zero bytes at an address for words of 8 bytes.
func (m *memory) room(n int) []byte {
	n = (n + 7) &^ 7
	last := len(m.blocks) - 1
	if last < 0 || cap(m.blocks[last])-len(m.blocks[last]) < n {
		m.blocks = append(m.blocks, make([]byte, 0, max(n, blockSize)))
		last++
	}
	at := len(m.blocks[last])
	m.blocks[last] = m.blocks[last][:at+n]
	return m.blocks[last][at : at+n : at+n]
}

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// bytes stores a string as it is.
func (m *memory) bytes(s string) uintptr {
	b := m.room(len(s))
	copy(b, s)
	return address(b)
}

// text stores a string with the zero at its end that the kernel looks for.
func (m *memory) text(s string) uintptr {
	b := m.room(len(s) + 1)
	copy(b, s)
	return address(b)
}

// words stores numbers of 8 bytes one after the other, low byte first. Smaller
// fields of a structure share a word.
func (m *memory) words(n ...uint64) uintptr {
	b := m.room(8 * len(n))
	for i, v := range n {
		for j := range 8 {
			b[8*i+j] = byte(v >> (8 * j))
		}
	}
	return address(b)
}

// list stores strings, and their addresses with a zero at the end.
func (m *memory) list(items []string) uintptr {
	at := make([]uint64, len(items)+1)
	for i, s := range items {
		at[i] = uint64(m.text(s))
	}
	return m.words(at...)
}

// cell is room for a descriptor that one call gives and others take.
func (m *memory) cell() uintptr { return address(m.room(8)) }
