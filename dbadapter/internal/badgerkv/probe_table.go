package badgerkv

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"os"

	"github.com/dgraph-io/badger/v4/fb"
	"github.com/dgraph-io/badger/v4/pb"
	"github.com/dgraph-io/badger/v4/y"
	"google.golang.org/protobuf/proto"

	"github.com/syncd-io/syncd/dbadapter/internal/damage"
)

// A table is
//
//	block… index  length of index(4)  checksum  length of checksum(4)
//
// and a block ends with a checksum and its length as well. probeTable reads the
// index, and, if blocks is set, every block.
func probeTable(dir string, id uint64, blocks bool) (err error) {
	path := tableFile(dir, id)
	defer damage.Recovered(path, &err)
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return damage.File(path, "it is missing")
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	index, end, err := readTableIndex(f, path, info.Size())
	if err != nil {
		return err
	}
	if index.OffsetsLength() == 0 {
		return damage.File(path, "it has no blocks")
	}
	if !blocks {
		return nil
	}
	r := bufio.NewReaderSize(io.NewSectionReader(f, 0, end), 1<<18)
	var at int64
	var buf []byte
	for i := range index.OffsetsLength() {
		var block fb.BlockOffset
		if !index.Offsets(&block, i) || int64(block.Offset()) != at || int64(block.Len()) > end-at {
			return damage.File(path, "block %d is not where it should be", i)
		}
		buf = append(buf[:0], make([]byte, block.Len())...)
		if _, err := io.ReadFull(r, buf); err != nil {
			return err
		}
		if err := checkBlock(buf); err != nil {
			return damage.File(path, "block %d at %d: %v", i, at, err)
		}
		at += int64(block.Len())
	}
	return nil
}

// readTableIndex returns the index of a table, verified, and where it begins.
func readTableIndex(f *os.File, path string, size int64) (*fb.TableIndex, int64, error) {
	at := size
	// back reads a field that ends at the place reached, and moves there.
	back := func(n int64) ([]byte, error) {
		if n < 0 || n > at {
			return nil, damage.File(path, "a length goes past its beginning")
		}
		at -= n
		b := make([]byte, n)
		_, err := f.ReadAt(b, at)
		return b, err
	}
	sized := func() ([]byte, error) {
		n, err := back(4)
		if err != nil {
			return nil, err
		}
		return back(int64(binary.BigEndian.Uint32(n)))
	}
	sum, err := sized()
	if err != nil {
		return nil, 0, err
	}
	index, err := sized()
	if err != nil {
		return nil, 0, err
	}
	if err := checkSum(index, sum); err != nil {
		return nil, 0, damage.File(path, "its index: %v", err)
	}
	return fb.GetRootAsTableIndex(index, 0), at, nil
}

func checkBlock(b []byte) error {
	if len(b) < 4 {
		return errors.New("it is too short")
	}
	n := int64(binary.BigEndian.Uint32(b[len(b)-4:]))
	b = b[:len(b)-4]
	if n > int64(len(b)) {
		return errors.New("its checksum goes past its beginning")
	}
	return checkSum(b[:int64(len(b))-n], b[int64(len(b))-n:])
}

func checkSum(b, sum []byte) error {
	var want pb.Checksum
	if err := proto.Unmarshal(sum, &want); err != nil {
		return err
	}
	return y.VerifyChecksum(b, &want)
}
