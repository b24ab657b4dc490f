// Package api is what the daemon and its clients say to one another in JSON:
// the bodies of requests and answers, with conversions from the Go types of
// package peer, and the path of a key. Names of fields are fixed; users' scripts
// read them. Errors are in package problem.
package api
