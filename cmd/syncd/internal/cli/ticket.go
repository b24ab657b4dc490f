package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
)

// maxTicket bounds a ticket read from standard input, in bytes; a real one
// holds at most a few addresses.
const maxTicket = 64 << 10

// readTicket reads one ticket, with white space around it.
func readTicket(r io.Reader) (string, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxTicket+1))
	if err != nil {
		return "", fmt.Errorf("reading the ticket: %w", err)
	}
	fields := strings.Fields(string(b))
	if len(b) > maxTicket || len(fields) != 1 {
		return "", problem.Usage("reading the ticket: want one word of at most %d bytes on standard input", maxTicket)
	}
	return fields[0], nil
}
