package oblivious

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/syncd-io/syncd/iblt"
)

// ErrTooMany tells that more rows matched than can be listed. Nothing was
// revealed by that; repeat the selection with a larger table.
var ErrTooMany = errors.New("more rows match than the table can list")

// Row is a row of Alice's table. Keys are distinct.
type Row struct{ Key, Value uint64 }

// Client is Alice. She keeps one row and one cell at a time.
type Client struct {
	seal   cipher.AEAD
	config iblt.TableConfig
	layout *iblt.Layout
	server *Server
}

// NewClient returns a Client with an AES key of 16, 24 or 32 bytes. The
// server must have as many cells as config says. The config's Seed is secret
// too.
//
// Nonces are random: one key is good for 2^32 writes.
func NewClient(key []byte, config iblt.TableConfig, server *Server) (*Client, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	seal, err := cipher.NewGCMWithRandomNonce(block)
	if err != nil {
		return nil, err
	}
	layout, err := iblt.NewLayout(config)
	if err != nil {
		return nil, err
	}
	if server.Len(Cells) != config.Cells {
		return nil, fmt.Errorf("use a server with %d cells for a table of %d", server.Len(Cells), config.Cells)
	}
	return &Client{seal: seal, config: config, layout: layout, server: server}, nil
}

// Store outsources the rows.
func (c *Client) Store(rows []Row) error {
	for i, row := range rows {
		b := binary.LittleEndian.AppendUint64(nil, row.Key)
		b = binary.LittleEndian.AppendUint64(b, row.Value)
		if err := c.write(Rows, i, b); err != nil {
			return err
		}
	}
	return nil
}

// Select returns the rows that match, in no particular order. For n rows and m
// cells it makes 2·m + n·(2k + 1) accesses, wherever and however many the
// matches are. It fails with ErrTooMany if they are too many to list.
func (c *Client) Select(match func(Row) bool) ([]Row, error) {
	for at := range c.config.Cells {
		if err := c.writeCell(at, &iblt.TableCell{}); err != nil {
			return nil, err
		}
	}
	for i := range c.server.Len(Rows) {
		b, err := c.read(Rows, i)
		if err != nil {
			return nil, err
		}
		row := Row{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])}
		if err := c.touch(row, match(row)); err != nil {
			return nil, err
		}
	}
	return c.list()
}

// touch reads and writes the cells of a row, and adds the row if it matches.
func (c *Client) touch(row Row, matches bool) error {
	var times int32
	if matches {
		times = 1
	}
	for _, at := range c.layout.Places(nil, row.Key) {
		cell, err := c.readCell(at)
		if err != nil {
			return err
		}
		c.layout.Apply(&cell, at, row.Key, row.Value, times)
		if err := c.writeCell(at, &cell); err != nil {
			return err
		}
	}
	return nil
}

// list reads all cells in order.
func (c *Client) list() ([]Row, error) {
	table, err := iblt.NewTable(c.config)
	if err != nil {
		return nil, err
	}
	for at := range c.config.Cells {
		cell, err := c.readCell(at)
		if err != nil {
			return nil, err
		}
		table.SetCell(at, cell)
	}
	all := table.Drain()
	if !all.Complete {
		return nil, ErrTooMany
	}
	var rows []Row
	for _, e := range all.Inserted {
		rows = append(rows, Row{e.Key, e.Value})
	}
	return rows, nil
}

func (c *Client) readCell(at int) (cell iblt.TableCell, err error) {
	b, err := c.read(Cells, at)
	if err != nil {
		return cell, err
	}
	cell.Count = int32(binary.LittleEndian.Uint32(b))
	for i, field := range []*uint64{&cell.KeySum, &cell.ValueSum, &cell.KeyCheck, &cell.ValueCheck} {
		*field = binary.LittleEndian.Uint64(b[4+8*i:])
	}
	return cell, nil
}

func (c *Client) writeCell(at int, cell *iblt.TableCell) error {
	b := binary.LittleEndian.AppendUint32(nil, uint32(cell.Count))
	for _, field := range []uint64{cell.KeySum, cell.ValueSum, cell.KeyCheck, cell.ValueCheck} {
		b = binary.LittleEndian.AppendUint64(b, field)
	}
	return c.write(Cells, at, b)
}

// read decrypts the cell at an address. The address is authenticated with it,
// so that the server cannot exchange two.
func (c *Client) read(region Region, at int) ([]byte, error) {
	sealed, err := c.server.Read(region, at)
	if err != nil {
		return nil, err
	}
	b, err := c.seal.Open(nil, nil, sealed, address(region, at))
	if err != nil {
		return nil, fmt.Errorf("decrypt %c%d: %w", region, at, err)
	}
	return b, nil
}

// write encrypts with a fresh nonce, and puts it before the ciphertext.
func (c *Client) write(region Region, at int, b []byte) error {
	return c.server.Write(region, at, c.seal.Seal(nil, nil, b, address(region, at)))
}

func address(region Region, at int) []byte {
	return binary.LittleEndian.AppendUint64([]byte{byte(region)}, uint64(at))
}
