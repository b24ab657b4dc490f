package roster

import (
	"crypto/ed25519"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/syncd-io/syncd/dbadapter"
	"github.com/syncd-io/syncd/internal/golden"
)

// The bytes of statements, and the list that a small history makes, never change
// unnoticed: other programs and other nodes depend on them. docs/MEMBERS.md
// describes them.
func TestGolden(t *testing.T) {
	var b strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	say("# Namespace 0102030405060708090a0b0c0d0e0f10. The Ed25519 seed of node n is the bytes n 00, sixteen times.")
	for n := range 6 {
		say("node %d = %x", n, string(idOf(n)))
	}
	start := dbadapter.TimestampAt(time.Unix(1_800_000_000, 0))
	second := func(n int) dbadapter.Timestamp { return start + dbadapter.TimestampAt(time.Unix(int64(n), 0)) }
	s := newSet()
	name := map[Hash]string{}
	var tips []Hash
	put := func(what string, author int, at int, d Statement, heads ...Hash) Hash {
		t.Helper()
		st := &Statement{
			Kind: d.Kind, Author: idOf(author), At: second(at), Heads: heads, Subject: d.Subject,
			Role: d.Role, Expires: d.Expires, Since: d.Since, Policy: d.Policy,
		}
		value, err := st.Sign(testNamespace, signer(author))
		if err != nil {
			t.Fatal(err)
		}
		h := HashOf(value)
		name[h] = what
		say("# %s", what)
		say("value = %x", value)
		say("hash = %s", h)
		switch status, err := s.Add(value); {
		case err != nil:
			say("refused")
		case status != Added:
			t.Fatalf("%s: status %d", what, status)
		}
		tips = []Hash{h}
		return h
	}
	on := func(author, at int, kind Kind, subject int, role Role, heads ...Hash) Hash {
		t.Helper()
		if len(heads) == 0 {
			heads = tips
		}
		var names []string
		for _, h := range heads {
			names = append(names, strings.SplitN(name[h], ":", 2)[0])
		}
		what := fmt.Sprintf("%c: node %d at second %d, having seen %s: %s node %d", 'A'+len(name), author, at, strings.Join(names, " and "), kind, subject)
		d := Statement{Kind: kind, Subject: idOf(subject), Role: role}
		if role > 0 {
			what += " " + role.String()
		}
		if subject == 3 && kind == Grant && at < 20 {
			d.Expires = second(20)
			what += ", expires at second 20"
		}
		return put(what, author, at, d, heads...)
	}
	say("# The seconds count from 1800000000.")
	put("A: node 0 at second 0: found, skew 5 minutes", 0, 0, Statement{Kind: Found, Policy: &Policy{MaxSkew: 5 * time.Minute}})
	on(0, 1, Grant, 1, RoleAdmin)
	on(1, 2, Grant, 2, RoleAdmin)
	on(2, 3, Grant, 3, RoleWrite)
	fork := on(2, 4, Grant, 4, RoleRead)
	on(0, 10, Remove, 1, 0)
	founder := on(2, 11, Lapse, 4, 0)
	on(1, 10, Grant, 5, RoleWrite, fork) // void: apart from the removal of its author
	on(1, 12, Remove, 2, 0)              // so is this
	on(2, 12, Remove, 0, 0, founder)     // refused: 0 is above 2
	on(4, 13, Return, 4, 0, founder)
	on(2, 21, Expire, 3, 0)
	last := on(0, 30, Grant, 1, RoleWrite)
	on(0, 31, Grant, 3, RoleRead, last)

	l := s.List()
	say("# The list.")
	say("digest = %x", l.Digest())
	for _, h := range s.Heads() {
		say("head = %s", strings.SplitN(name[h], ":", 2)[0])
	}
	for _, v := range l.Voided() {
		say("void = %s", strings.SplitN(name[v.Hash], ":", 2)[0])
	}
	seconds := func(at dbadapter.Timestamp) int64 { return at.Time().Unix() - 1_800_000_000 }
	for n := range 6 {
		line := fmt.Sprintf("node %d:", n)
		if m, ok := l.Member(idOf(n)); ok {
			line += fmt.Sprintf(" %s by %s, epoch %d", m.Role, strings.SplitN(name[m.Grant], ":", 2)[0], m.Epoch)
			if m.Expires != 0 {
				line += fmt.Sprintf(", expires at second %d", seconds(m.Expires))
			}
		} else if f, ok := l.Former(idOf(n)); ok {
			line += fmt.Sprintf(" former, by %s", strings.SplitN(name[HashOf(f.Statement)], ":", 2)[0])
			if f.Void {
				line += ", which made its grant void"
			}
		}
		line += "; may write in seconds"
		for sec := range 50 {
			if l.MayWrite(must(idOf(n).Writer()), second(sec)) {
				line += fmt.Sprintf(" %d", sec)
			}
		}
		say("%s", line)
	}
	goldenLayouts(t, say)
	golden.Compare(t, "testdata/golden.txt", b.String())
}

// goldenLayouts writes a second history, of a namespace that is cut into shards.
func goldenLayouts(t *testing.T, say func(format string, args ...any)) {
	t.Helper()
	const placement = "\x83\x01\x18\x20\x02" // by hash, 32 shards, 2 replicas
	cfg := Config{
		Namespace: dbadapter.NamespaceIDOf(dbadapter.Secret{}, []byte(string(idOf(0))+placement)),
		Creator:   idOf(0), Placement: placement, Verify: ed25519.Verify,
	}
	say("# A namespace with the secret of 32 bytes 00, made by node 0, with the placement %x.", placement)
	say("namespace = %x", cfg.Namespace[:])
	s := New(cfg)
	fork := New(cfg)
	second := func(n int64) dbadapter.Timestamp { return dbadapter.TimestampAt(time.Unix(1_800_000_000+n, 0)) }
	put := func(what string, author int, at int64, d Statement, into ...*Set) {
		t.Helper()
		value := must(Make(into[0], d, idOf(author), second(at), signer(author)))
		say("# %s", what)
		say("value = %x", value)
		say("hash = %s", HashOf(value))
		for _, set := range into {
			if status, err := set.Add(value); err != nil || status != Added {
				t.Fatalf("%s: status %d, %v", what, status, err)
			}
		}
	}
	table := func(n byte) Table { return TableOf([]byte{n}) }
	put("O: node 0 at second 0: found, skew 5 minutes", 0, 0, Statement{Kind: Found, Policy: &Policy{MaxSkew: 5 * time.Minute}, Placement: placement}, s, fork)
	put("P: node 0 at second 1, having seen O: layout of the table 01", 0, 1, Statement{Kind: Layout, Table: table(1)}, s, fork)
	put("Q: node 0 at second 2, having seen P: grant node 1 admin", 0, 2, Statement{Kind: Grant, Subject: idOf(1), Role: RoleAdmin}, s, fork)
	put("R: node 1 at second 3, having seen Q: layout of the table 02", 1, 3, Statement{Kind: Layout, Table: table(2)}, s)
	put("S: node 0 at second 3, having seen Q: layout of the table 03", 0, 3, Statement{Kind: Layout, Table: table(3)}, fork)
	both := func(what string) {
		t.Helper()
		s.Load(values(fork))
		fork.Load(values(s))
		if s.Digest() != fork.Digest() {
			t.Fatal("two lists of the same statements")
		}
		l, _ := s.List().Layout()
		say("# %s", what)
		say("digest = %x", s.Digest())
		say("layout = epoch %d, table %s, statement %s", l.Epoch, l.Table, l.Statement)
	}
	both("The list: of R and S the one with the greater hash counts.")
	put("T: node 1 at second 4, having seen R and S: layout of the table 04", 1, 4, Statement{Kind: Layout, Table: table(4)}, s)
	put("U: node 0 at second 4, having seen R and S: remove node 1", 0, 4, Statement{Kind: Remove, Subject: idOf(1)}, fork)
	both("The list: T is void, being apart from the removal of its author; S counts as before.")
	put("V: node 0 at second 5, having seen U: layout of the table 04", 0, 5, Statement{Kind: Layout, Table: table(4)}, s, fork)
	both("The list.")
}
