//go:build !linux

package badgerkv

// mappedTables knows of none: where tables are mapped is asked of Linux only.
func mappedTables(string) map[uint64][]mapping { return nil }

func adviseRandom([]mapping) {}
func adviseNormal([]mapping) {}
func dropPages([]mapping)    {}

func mappedPages() (int64, bool) { return 0, false }
