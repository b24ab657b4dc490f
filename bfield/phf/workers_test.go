package phf

import (
	"strings"
	"testing"

	"github.com/syncd-io/syncd/bfield/keyed"
)

func TestWorkers(t *testing.T) {
	for workers, good := range map[int]bool{-1: false, 0: true, 1: true, 256: true, 257: false, 1 << 40: false} {
		_, err := Build(Config{Workers: workers}, keyed.Numbers([]uint64{1}))
		if (err == nil) != good || !good && !strings.Contains(err.Error(), "workers") {
			t.Errorf("%d workers: %v", workers, err)
		}
	}
}
