package wire

import "unicode/utf8"

func (p *parser) refuse() Message {
	m := &Refuse{Code: Code(p.byte()), Version: p.byte()}
	n := p.uvarint()
	if p.err == nil && (n > MaxStatements || (m.Code == CodeRemoved) != (n > 0)) {
		p.fail("code %d with %d statements", m.Code, n)
	}
	for ; n > 0 && p.err == nil; n-- {
		b := p.bytes(MaxStatement, "a statement")
		if p.err == nil && len(b) == 0 {
			p.fail("an empty statement")
		}
		m.Statements = append(m.Statements, b)
	}
	m.Text = string(p.take(uint64(min(len(p.rest), MaxText))))
	if !utf8.ValidString(m.Text) {
		p.fail("text is not UTF-8")
	}
	return m
}
