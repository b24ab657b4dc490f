package cuckoo

import (
	"errors"
	"testing"

	"github.com/syncd-io/syncd/bfield/internal/fieldtest"
)

func TestTableIsAField(t *testing.T) {
	for name, config := range map[string]Config{
		"H2B4":   {ValueBits: 20, FalsePositive: 0x1p-29},
		"H3B1":   {ValueBits: 1, FalsePositive: 0x1p-31, Hashes: 3, Slots: 1},
		"filter": {ValueBits: 0, FalsePositive: 0x1p-10},
	} {
		t.Run(name, func(t *testing.T) {
			suite := fieldtest.Suite{
				Build: func(in fieldtest.Input) (fieldtest.Field, error) {
					// Two keys look the same in one of some 10^4 suites; under another
					// seed these two differ, and two values of one key do not.
					table, err := filled(config, in)
					if errors.Is(err, ErrConflict) {
						in.Seed++
						table, err = filled(config, in)
					}
					return table, err
				},
				Load: func(data []byte) (fieldtest.Field, error) {
					table := new(Table)
					return table, table.UnmarshalBinary(data)
				},
				Values:        1 << config.ValueBits,
				Contradiction: ErrConflict,
			}
			// The planned rate, and half of it because fingerprints have whole bits.
			suite.FalsePositive = [2]float64{config.FalsePositive / 2 * 0.9, config.FalsePositive}
			fieldtest.Run(t, suite)
		})
	}
}

// filled is a table of what a suite builds.
func filled(c Config, in fieldtest.Input) (*Table, error) {
	c.Keys, c.Seed = in.Len(), in.Seed
	table, err := New(c)
	if err != nil {
		return nil, err
	}
	for i, v := range in.Values {
		if err := table.Insert(in.List().At(i), v); err != nil {
			return nil, err
		}
	}
	return table, nil
}
