// Command flowtracker lists the open connections of a router from a log of
// their starts and ends, in memory that does not grow with their number: the
// paper's application "Tracking Network Acknowledgments" (section 1.3).
//
//	go run ./iblt/examples/flowtracker --flows 1000 < log
//
// A line of the log is one of
//
//	start 192.0.2.1:4711 198.51.100.7:443
//	end   192.0.2.1:4711 198.51.100.7:443
//	list
//
// and # begins a comment. At each "list", and at the end, the command prints
// how many flows are open and which.
//
// The log may be lossy. A start that came twice is one flow, seen twice; an end
// whose start was missed is listed as such; a flow whose end was missed stays
// open. When there are too many flows at a time, or two of one source to the
// same port of different hosts, the list is incomplete and says so; when they
// have ended, it is complete again.
package main
