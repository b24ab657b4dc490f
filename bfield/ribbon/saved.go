package ribbon

// MarshalBinary returns the saved form, which UnmarshalBinary reads.
func (r *Retrieval) MarshalBinary() ([]byte, error) {
	return marshal(header{kindRetrieval, r.table.values, 0, r.seed, r.keys}, r.table), nil
}

// UnmarshalBinary reads what MarshalBinary returned. It refuses anything else
// with an error that wraps ErrFormat, without more memory than data has. It
// keeps no part of data.
func (r *Retrieval) UnmarshalBinary(data []byte) error {
	read, err := parseRetrieval(data, copiedWords)
	if err == nil {
		*r = *read
	}
	return err
}

// RetrievalOf is the Retrieval that MarshalBinary saved as data, used where it lies as
// by MapOf.
func RetrievalOf(data []byte) (*Retrieval, error) { return parseRetrieval(data, wordsInPlace) }

func parseRetrieval(data []byte, words wordsOf) (*Retrieval, error) {
	h, data, err := parseHeader(data)
	if err != nil {
		return nil, err
	}
	if h.kind != kindRetrieval {
		return nil, formatError("kind %d is no retrieval", h.kind)
	}
	t, rest, err := parseTable(h, h.values, 0, data, words)
	if err != nil {
		return nil, err
	}
	if len(rest) != 0 {
		return nil, formatError("%d bytes too many", len(rest))
	}
	return &Retrieval{seed: h.seed, keys: h.keys, table: t}, nil
}

// MarshalBinary returns the saved form, which UnmarshalBinary reads.
func (f *Filter) MarshalBinary() ([]byte, error) {
	return marshal(header{byte(f.kind) + 1, 0, f.table.fingerprints, f.seed, f.keys}, f.table), nil
}

// UnmarshalBinary reads what MarshalBinary returned. It refuses anything else
// with an error that wraps ErrFormat, without more memory than data has. It
// keeps no part of data.
func (f *Filter) UnmarshalBinary(data []byte) error {
	read, err := parseFilter(data, copiedWords)
	if err == nil {
		*f = *read
	}
	return err
}

// FilterOf is the Filter that MarshalBinary saved as data, used where it lies as by
// MapOf.
func FilterOf(data []byte) (*Filter, error) { return parseFilter(data, wordsInPlace) }

func parseFilter(data []byte, words wordsOf) (*Filter, error) {
	h, data, err := parseHeader(data)
	if err != nil {
		return nil, err
	}
	if h.kind > byte(kinds) {
		return nil, formatError("kind %d is no filter", h.kind)
	}
	t, rest, err := parseTable(h, 0, h.fingerprints, data, words)
	if err != nil {
		return nil, err
	}
	if len(rest) != 0 {
		return nil, formatError("%d bytes too many", len(rest))
	}
	return &Filter{kind: Kind(h.kind - 1), seed: h.seed, keys: h.keys, table: t}, nil
}

// MarshalBinary returns the saved form, which UnmarshalBinary reads.
func (m *Map) MarshalBinary() ([]byte, error) {
	h := header{kindMap, m.main.values, m.main.fingerprints, m.seed, m.keys}
	if m.high == nil {
		return marshal(h, m.main), nil
	}
	h.values += m.high.values
	return marshal(h, m.main, m.high), nil
}

// UnmarshalBinary reads what MarshalBinary returned. It refuses anything else
// with an error that wraps ErrFormat, without more memory than data has. It
// keeps no part of data.
func (m *Map) UnmarshalBinary(data []byte) error {
	read, err := parseMap(data, copiedWords)
	if err == nil {
		*m = *read
	}
	return err
}

// MapOf is the Map that MarshalBinary saved as data. It reads all of data once, to
// verify it, and then uses it where it lies, a file mapped into memory for
// example. So data must stay as it is for as long as the Map is used. Where the
// processor's byte order or the alignment of data, to 8, forbid that, it copies.
// If a mapped file is cut meanwhile, a look-up ends the process: the caller must
// prevent that.
func MapOf(data []byte) (*Map, error) { return parseMap(data, wordsInPlace) }

func parseMap(data []byte, words wordsOf) (*Map, error) {
	h, data, err := parseHeader(data)
	if err != nil {
		return nil, err
	}
	if h.kind != kindMap {
		return nil, formatError("kind %d is no map", h.kind)
	}
	m := &Map{seed: h.seed, keys: h.keys}
	low := lowBits(h.values, h.fingerprints)
	if m.main, data, err = parseTable(h, low, h.fingerprints, data, words); err != nil {
		return nil, err
	}
	if low < h.values {
		if m.high, data, err = parseTable(h, h.values-low, 0, data, words); err != nil {
			return nil, err
		}
	}
	if len(data) != 0 {
		return nil, formatError("%d bytes too many", len(data))
	}
	return m, nil
}
