//go:build !linux || !cgo

package pebblekv

// trim: Pebble's memory is Go's, or the C library has no call for it.
func trim() {}
