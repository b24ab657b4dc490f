package ribbon

import (
	"strings"
	"testing"

	"github.com/syncd-io/syncd/bfield/keyed"
)

func TestWorkers(t *testing.T) {
	build := map[string]func(c Config) error{
		"retrieval": func(c Config) error { _, err := BuildRetrieval(c, keyed.Numbers([]uint64{1}), []uint64{1}); return err },
		"map":       func(c Config) error { _, err := BuildMap(c, keyed.Numbers([]uint64{1}), []uint64{1}); return err },
		"filter":    func(c Config) error { _, err := BuildFilter(c, keyed.Numbers([]uint64{1})); return err },
		"coded": func(c Config) error {
			code, err := NewCode(map[uint64]uint64{1: 1, 2: 1})
			if err != nil {
				return err
			}
			_, err = BuildCoded(c, code, keyed.Numbers([]uint64{1}), []uint64{1})
			return err
		},
	}
	for name, build := range build {
		for workers, good := range map[int]bool{-1: false, 0: true, 1: true, 256: true, 257: false, 1 << 40: false} {
			err := build(Config{ValueBits: 1, FingerprintBits: 1, Workers: workers})
			if (err == nil) != good || !good && !strings.Contains(err.Error(), "workers") {
				t.Errorf("%s of %d workers: %v", name, workers, err)
			}
		}
	}
}
