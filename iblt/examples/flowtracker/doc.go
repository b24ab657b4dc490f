// Command flowtracker lists the open connections of a router from a log of
// their starts and ends. Its memory does not grow with their number. It is the
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
// The log may be lossy. A start that is logged twice is one flow, seen twice. An
// end whose start was missed is listed as such. A flow whose end was missed stays
// open.
//
// The list is incomplete, and says so, while there are too many flows at a time.
// So it is while one source has two flows to the same port of different hosts.
// When they have ended, it is complete again.
package main
