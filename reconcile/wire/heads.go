package wire

// Heads asks, in a dry run that lists keys, for the next heads of the responder's
// records that differ, so many of them. They come as Offers; End after fewer of them
// says that there are no more.
type Heads struct{ Count uint64 }

func (m *Heads) appendBody(b []byte) []byte { return appendUvarint(b, m.Count) }

func (p *parser) heads() Message {
	n := p.uvarint()
	if p.err == nil && (n == 0 || n > MaxHeads) {
		p.fail("%d heads asked for; 1 to %d are allowed", n, MaxHeads)
	}
	return &Heads{Count: n}
}
