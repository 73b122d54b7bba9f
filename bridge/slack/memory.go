package slack

import "sync"

// memory is a bounded map. It forgets the older half when it is full, so what
// was noted last is kept for at least half its size.
type memory[K comparable, V any] struct {
	mu       sync.Mutex
	half     int
	old, new map[K]V
}

func newMemory[K comparable, V any](size int) *memory[K, V] {
	return &memory[K, V]{half: max(size/2, 1), new: map[K]V{}}
}

func (m *memory[K, V]) put(k K, v V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.store(k, v)
}

func (m *memory[K, V]) store(k K, v V) {
	if len(m.new) >= m.half {
		m.old, m.new = m.new, map[K]V{}
	}
	m.new[k] = v
}

func (m *memory[K, V]) get(k K) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.find(k)
}

func (m *memory[K, V]) find(k K) (V, bool) {
	if v, ok := m.new[k]; ok {
		return v, true
	}
	v, ok := m.old[k]
	return v, ok
}

// first notes v unless something is noted already, and says whether it did.
func (m *memory[K, V]) first(k K, v V) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.find(k); known {
		return false
	}
	m.store(k, v)
	return true
}

// take gives what is noted and forgets it.
func (m *memory[K, V]) take(k K) (V, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.find(k)
	delete(m.new, k)
	delete(m.old, k)
	return v, ok
}
