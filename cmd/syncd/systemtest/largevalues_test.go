//go:build linux

package systemtest

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
)

// What TestShardsInUse does by placement writer alone.

// atOnce has each daemon write one new key at the same time, or three of them import the same dated item.
func (u *use) atOnce(random *rand.Rand) {
	u.mu.Lock()
	var all []*daemon
	for _, d := range u.daemons {
		if u.up[d] {
			all = append(all, d)
		}
	}
	u.mu.Unlock()
	key := fmt.Sprint("new ", u.values.Add(1))
	var writing sync.WaitGroup
	defer writing.Wait()
	if random.IntN(2) == 0 {
		for _, d := range all[:min(6, len(all))] {
			writing.Go(func() { u.put(d, key, "quorum", ifAbsent) })
		}
		return
	}
	value, date := u.value(), time.Now().UTC().Format(time.RFC3339Nano)
	line, err := json.Marshal(map[string]string{"key": key, "value": value, "time": date})
	if err != nil {
		u.t.Error(err)
	}
	var done atomic.Bool
	for _, d := range all[:min(3, len(all))] {
		writing.Go(func() { // at level one for the history: an import tells no version
			o := u.do(d, &op{Kind: "import", Level: "one", Key: key, Value: told(value)}, func(ctx context.Context, _ *op) error {
				_, err := d.api.Import(ctx, api.ImportParams{NSParams: api.OfNS(namespace)}, append(slices.Clone(line), '\n'))
				return err
			})
			if o.Exit == 0 {
				done.Store(true)
			}
		})
	}
	writing.Wait()
	if o := u.get(all[0], key, "quorum", ""); done.Load() && (o.Exit == 4 || o.Exit == 0 && o.Value != told(value)) {
		u.t.Errorf("three have imported one item: %+v", *o)
	}
}

// told is a value as the history has it: of a large one its beginning and its hash.
func told(value string) string {
	if len(value) <= 64 {
		return value
	}
	return fmt.Sprintf("%.20s… %x", value, sha256.Sum256([]byte(value)))
}

// value is one that nobody has written: by placement writer of any size up to 64 KiB.
func (u *use) value() string {
	n := u.values.Add(1)
	value := fmt.Sprint("value ", n, " ")
	if *usePlacement != "writer" {
		return value
	}
	return value + strings.Repeat("v", 20<<(n%12)-len(value)%20) // small ones as often as large ones
}
