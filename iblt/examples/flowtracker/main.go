package main

import (
	"bufio"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"strings"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "flowtracker:", err)
		os.Exit(1)
	}
}

// run is the command.
func run(args []string, in io.Reader, out io.Writer) error {
	flags := flag.NewFlagSet("flowtracker", flag.ContinueOnError)
	flows := flags.Int("flows", 1000, "flows that can be listed at a time")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	var seed [8]byte
	rand.Read(seed[:])
	t, err := NewTracker(*flows, binary.LittleEndian.Uint64(seed[:]))
	if err != nil {
		return err
	}
	lines := bufio.NewScanner(in)
	for n := 1; lines.Scan(); n++ {
		if err := t.read(lines.Text(), out); err != nil {
			return fmt.Errorf("read line %d of the log: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read the log: %w", err)
	}
	t.print(out)
	return nil
}

// read takes a line of the log.
func (t *Tracker) read(line string, out io.Writer) error {
	line, _, _ = strings.Cut(line, "#")
	words := strings.Fields(line)
	switch {
	case len(words) == 0:
		return nil
	case len(words) == 1 && words[0] == "list":
		t.print(out)
		return nil
	case len(words) != 3:
		return fmt.Errorf("%q is not \"start FROM TO\", \"end FROM TO\" or \"list\"", line)
	}
	var f Flow
	for i, at := range []*netip.AddrPort{&f.From, &f.To} {
		address, err := netip.ParseAddrPort(words[i+1])
		if err != nil || !address.Addr().Is4() {
			return fmt.Errorf("%q is not an IPv4 address with a port", words[i+1])
		}
		*at = address
	}
	switch words[0] {
	case "start":
		t.Start(f)
	case "end":
		t.End(f)
	default:
		return fmt.Errorf("%q is neither \"start\" nor \"end\"", words[0])
	}
	return nil
}

// print lists the open flows.
func (t *Tracker) print(out io.Writer) {
	open, orphaned, complete := t.List()
	if complete {
		fmt.Fprintf(out, "%d open\n", len(open))
	} else {
		fmt.Fprintf(out, "incomplete, %d open among others\n", len(open))
	}
	for _, f := range open {
		fmt.Fprintln(out, " ", f)
	}
	for _, f := range orphaned {
		fmt.Fprintln(out, "  ended, start not seen:", f)
	}
}
