package stream

import (
	"bufio"
	"fmt"
	"io"

	"github.com/multiformats/go-varint"

	"github.com/syncd-io/syncd/dbadapter"
)

// WriteMessage sends a message that is no frame of a session: its length, and its bytes.
func WriteMessage(w io.Writer, message []byte) error {
	_, err := w.Write(append(varint.ToUvarint(uint64(len(message))), message...))
	return broken(err)
}

// ReadMessage receives one of at most limit bytes. It may read beyond the message.
func ReadMessage(r io.Reader, limit uint64) ([]byte, error) {
	buffered := bufio.NewReader(r)
	size, err := varint.ReadUvarint(buffered)
	if err != nil {
		return nil, broken(err)
	}
	if size > limit {
		return nil, fmt.Errorf("%w: a message of %d bytes; at most %d are allowed", dbadapter.ErrLimit, size, limit)
	}
	// ReadAll grows as the bytes come: the announced length allocates nothing.
	body, err := io.ReadAll(io.LimitReader(buffered, int64(size)))
	if err == nil && uint64(len(body)) != size {
		err = io.ErrUnexpectedEOF
	}
	return body, broken(err)
}
