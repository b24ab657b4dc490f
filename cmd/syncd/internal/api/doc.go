// Package api is what the daemon and its clients say to one another: the routes
// with their parameters, and the bodies of requests and answers in JSON, with
// conversions from the Go types of package peer. A route is a row, by which
// package httpapi serves it and package client asks. Names of fields are fixed;
// users' scripts read them. Errors are in package problem.
package api
