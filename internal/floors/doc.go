// Package floors holds the architecture as a test. It says which package stands on
// which floor, that imports point down only, and which packages may use which
// libraries. A second test checks that the documents name only files, tests and
// identifiers that exist. The package has no code of its own.
//
// A new package fails the test until it is given its floor.
package floors
