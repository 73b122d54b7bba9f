package entry

// magic begins every encoded list, so that a wrong descriptor is noticed.
const magic = "parlour-steps-1\n"

// Encode gives the bytes that Decode reads. It reports false where a step does
// not have the shape of its kind.
func Encode(steps []Step) ([]byte, bool) {
	out := append([]byte{}, magic...)
	for _, s := range steps {
		if !s.fits() {
			return nil, false
		}
		out = append(out, byte(s.Op), byte(len(s.N)))
		for _, n := range s.N {
			out = number(out, uint64(n), 8)
		}
		out = number(out, uint64(len(s.S)), 4)
		for _, str := range s.S {
			out = number(out, uint64(len(str)), 4)
			out = append(out, str...)
		}
	}
	return out, true
}

// Decode reads what Encode wrote. It reports false for anything else, and for a
// step that does not have the shape of its kind; it never panics.
func Decode(data []byte) ([]Step, bool) {
	r := reader{data: data, ok: true}
	if r.take(len(magic)) != magic || !r.ok {
		return nil, false
	}
	var steps []Step
	for r.ok && len(r.data) > 0 {
		s := r.step()
		if !r.ok || !s.fits() {
			return nil, false
		}
		steps = append(steps, s)
	}
	return steps, r.ok
}

func number(out []byte, n uint64, size int) []byte {
	for range size {
		out = append(out, byte(n))
		n >>= 8
	}
	return out
}

// reader takes values off the front of data; ok turns false at the first lack.
type reader struct {
	data []byte
	ok   bool
}

func (r *reader) step() Step {
	s := Step{Op: Op(r.number(1))}
	for range r.count(1, 8) {
		s.N = append(s.N, int64(r.number(8)))
	}
	for range r.count(4, 4) {
		s.S = append(s.S, r.take(r.count(4, 1)))
	}
	return s
}

// count reads how many items of at least size bytes follow, and refuses more
// than the data can hold, so that a wrong count allocates nothing.
func (r *reader) count(width, size int) int {
	n := r.number(width)
	if n > uint64(len(r.data)/size) {
		r.ok = false
		return 0
	}
	return int(n)
}

func (r *reader) number(width int) uint64 {
	b := r.take(width)
	var n uint64
	for i := len(b) - 1; i >= 0; i-- {
		n = n<<8 | uint64(b[i])
	}
	return n
}

func (r *reader) take(n int) string {
	if !r.ok || n > len(r.data) {
		r.ok = false
		return ""
	}
	s := string(r.data[:n])
	r.data = r.data[n:]
	return s
}
