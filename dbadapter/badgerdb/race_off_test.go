//go:build !race

package badgerdb

// RaceDetector: see race_on_test.go.
const RaceDetector = false
