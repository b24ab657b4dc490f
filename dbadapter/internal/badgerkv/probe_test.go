package badgerkv

import "testing"

// FuzzReadLogged reads any bytes as a log: an entry ends where the log does, or
// before.
func FuzzReadLogged(f *testing.F) {
	f.Add([]byte{0x40, 0, 8, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		for at := range b {
			if e, err := readLogged(b, at); err == nil && (e.end <= at || e.end > len(b)) {
				t.Errorf("an entry at %d ends at %d of %d", at, e.end, len(b))
			}
		}
	})
}
