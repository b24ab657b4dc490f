package membership

import (
	"fmt"
	"strings"
	"time"

	"github.com/syncd-io/syncd/internal/roster"
)

// Bounds of what is known of members, and what each comes from.
const (
	// MaxUses is how many nodes a ticket admits.
	MaxUses = roster.MaxMembers
	// MaxAddrs is how many addresses are kept of a node, and MaxAddrSize how long one
	// is: a DNS name takes 253 bytes.
	MaxAddrs    = 16
	MaxAddrSize = 512
	// MaxJoinReply is how long a reply to a join is, in bytes. It has room for the
	// statements that bound a list, roster.MaxMembers members with MaxAddrs addresses
	// each, 8 MiB, and what frames these.
	MaxJoinReply = roster.MaxBytes + 5*roster.MaxStatements + roster.MaxMembers*(64+MaxAddrs*(3+MaxAddrSize)) + 1<<10
	// MaxInvites is how many tickets of a namespace are remembered: open, used
	// and expired.
	MaxInvites = 1000
	// MaxName is the longest local name of a namespace, in bytes.
	MaxName = 64
	// DefaultInviteLife is long enough to carry a ticket to a colleague, and
	// short enough that a forgotten one does no harm.
	DefaultInviteLife = 24 * time.Hour
	// MaxInviteLife is how long a ticket can be used: a secret that lies about
	// for longer than a year is forgotten, not kept.
	MaxInviteLife = 365 * 24 * time.Hour

	// tokenSize makes tokens that cannot be guessed, and is the size of their
	// SHA-256.
	tokenSize = 32
	// maxTicket holds 16 addresses of 512 bytes in base32.
	maxTicket = 16 << 10
	// ExpiredInvites are remembered for so long, to tell "expired" from
	// "unknown" to the holder of the ticket.
	ExpiredInvites = 7 * 24 * time.Hour
)

// CheckName is the rule for local names: they appear in URLs and on command
// lines.
func CheckName(name string) error {
	alnum := func(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' }
	ok := len(name) >= 1 && len(name) <= MaxName && alnum(name[0])
	for i := range len(name) {
		ok = ok && (alnum(name[i]) || strings.IndexByte("._-", name[i]) >= 0)
	}
	if !ok {
		return fmt.Errorf("namespace name %q: want 1 to %d letters, digits, '.', '_' or '-', the first a letter or digit", name, MaxName)
	}
	return nil
}
