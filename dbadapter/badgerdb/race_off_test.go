//go:build !race

package badgerdb_test

// raceDetector: see race_on_test.go.
const raceDetector = false
