package oblivious

import "fmt"

// Region says what the Server stores at an address.
type Region byte

// The regions.
const (
	Rows  Region = 'r'
	Cells Region = 'c'
)

// Access is what the Server sees of a request, but for the ciphertext.
type Access struct {
	Write  bool
	Region Region
	At     int
	Bytes  int
}

// Server is Bob: he stores ciphertexts, and remembers all that he is asked.
type Server struct {
	stored map[Region][][]byte
	Trace  []Access
	// Writes are the ciphertexts that were written, in order.
	Writes [][]byte
}

// NewServer returns a Server with room for rows and cells.
func NewServer(rows, cells int) *Server {
	return &Server{stored: map[Region][][]byte{Rows: make([][]byte, rows), Cells: make([][]byte, cells)}}
}

// Len is the number of addresses of a region.
func (s *Server) Len(region Region) int { return len(s.stored[region]) }

// Read returns what is stored. The caller must not change it.
func (s *Server) Read(region Region, at int) ([]byte, error) {
	if at < 0 || at >= s.Len(region) {
		return nil, fmt.Errorf("read %c%d: there are %d", region, at, s.Len(region))
	}
	b := s.stored[region][at]
	s.Trace = append(s.Trace, Access{Region: region, At: at, Bytes: len(b)})
	return b, nil
}

// Write stores a ciphertext, which is the Server's from then on.
func (s *Server) Write(region Region, at int, b []byte) error {
	if at < 0 || at >= s.Len(region) {
		return fmt.Errorf("write %c%d: there are %d", region, at, s.Len(region))
	}
	s.stored[region][at] = b
	s.Trace = append(s.Trace, Access{Write: true, Region: region, At: at, Bytes: len(b)})
	s.Writes = append(s.Writes, b)
	return nil
}
