//go:build !race

package disktest

// raceDetector: see race_on.go.
const raceDetector = false
