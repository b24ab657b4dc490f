//go:build linux && cgo

package pebblekv

/*
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
static void trim(void) { malloc_trim(0); }
#else
static void trim(void) {}
#endif
*/
import "C"

// trim lets the C library give back what Pebble has freed: its cache, and its tables in
// memory, are not Go's. Of what lies between blocks in use glibc gives back nothing by
// itself.
func trim() { C.trim() }
