//go:build !amd64

package ribbon

const wide = false

func parities(*uint64, int, int, uint64, uint64) uint64 { panic("not wide") }
