//go:build race

package disktest

// raceDetector says that the test is built with the race detector, under which
// opening a store takes seconds: it watches each byte of Badger's arenas.
const raceDetector = true
