package membership

import (
	"crypto/ed25519"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/roster"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func someTicket() Ticket {
	seed := [ed25519.SeedSize]byte{7: 1}
	return Ticket{
		Inviter: roster.IDOf(ed25519.NewKeyFromSeed(seed[:]).Public().(ed25519.PublicKey)), Addrs: [][]byte{{4, 192, 0, 2, 1, 6, 15, 161}}, Namespace: dbadapter.NamespaceID{1}, Name: "notes",
		Token: [tokenSize]byte{2}, Role: roster.RoleWrite, Expires: time.Unix(1_800_000_000, 0).UTC(),
	}
}

// The text of a ticket never changes: tickets are out.
func TestTicketVector(t *testing.T) {
	const want = "syncd1u4avqjqaeqeacerawfyd7y6p2tnsjuhxsrtiow4mza6ahuc76teye66bjrcppxztekbqfakiataaaaqbayh2ca2qaeaaaaaaaaaaaaaaaaaaaaaaaacgk3tporsxgbkyeabaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabqca4ngwsosaa"
	ticket := someTicket()
	text := must(ticket.Encode())
	if text != want {
		t.Errorf("the ticket is %s", text)
	}
	for _, s := range []string{text, strings.ToUpper(text), " " + text + "\r\n"} {
		if back, err := ParseTicket(s); err != nil || !reflect.DeepEqual(*back, ticket) {
			t.Errorf("read as %+v, %v", back, err)
		}
	}
}

// A ticket of which any character or field is wrong is refused, in words that say
// nothing of what is in it.
func TestBadTickets(t *testing.T) {
	ticket := someTicket()
	text := must(ticket.Encode())
	bad := []string{"", "syncd1", "hello", "syncd2" + text[6:], text + "!", strings.Repeat("syncd1a", 10000), "syncd1" + strings.Repeat("a", maxTicket+1)}
	for i := range len(text) - 1 {
		bad = append(bad, text[:i])
	}
	for _, edit := range []func(*ticketFields){
		func(f *ticketFields) { f.Inviter = nil },
		func(f *ticketFields) { f.Inviter = f.Inviter[1:] },
		func(f *ticketFields) { f.Addrs = nil },
		func(f *ticketFields) { f.Namespace = f.Namespace[1:] },
		func(f *ticketFields) { f.Name = "" },
		func(f *ticketFields) { f.Name = "a/b" },
		func(f *ticketFields) { f.Token = f.Token[1:] },
		func(f *ticketFields) { f.Token = append(f.Token, 0) },
		func(f *ticketFields) { f.Role = 0 },
		func(f *ticketFields) { f.Role = 4 },
		func(f *ticketFields) { f.Addrs = slices.Repeat([][]byte{make([]byte, 512)}, 20) },
	} {
		var f ticketFields
		if err := roster.Unmarshal(must(ticketText.DecodeString(text[len(TicketPrefix):])), &f); err != nil {
			t.Fatal(err)
		}
		edit(&f)
		bad = append(bad, TicketPrefix+ticketText.EncodeToString(must(cbor.Marshal(f))))
	}
	for _, s := range bad {
		if _, err := ParseTicket(s); !errors.Is(err, ErrInvalid) || len(s) > 10 && strings.Contains(err.Error(), s) {
			t.Errorf("ticket %.60q: %v", s, err)
		}
	}
}

// What parses as a ticket says the same when it is written and read again.
func FuzzTicket(f *testing.F) {
	good := someTicket()
	f.Add(must(good.Encode()))
	f.Add("syncd1")
	f.Add("syncd1aaaaaaaa")
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseTicket(s)
		if err != nil {
			return
		}
		text, err := a.Encode()
		if err != nil {
			t.Fatal(err)
		}
		b, err := ParseTicket(text)
		if err != nil {
			t.Fatalf("its own text does not parse: %v", err)
		}
		if again, _ := b.Encode(); again != text || !reflect.DeepEqual(a, b) {
			t.Errorf("%q became %q", text, again)
		}
	})
}

// The tickets that expired long ago are forgotten.
func TestOldInvites(t *testing.T) {
	r := &Record{}
	for i := range 10 {
		r.Invites = append(r.Invites, Invite{Expires: int64(i) * 1000})
	}
	if r.dropOldInvites(time.Unix(5500, 0).Add(ExpiredInvites)); len(r.Invites) != 4 {
		t.Errorf("%d tickets are left", len(r.Invites))
	}
}
