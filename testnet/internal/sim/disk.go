package sim

import (
	"errors"
	"slices"
	"strings"
)

// ErrFull: the disk has no room left.
var ErrFull = errors.New("no space left on the disk")

// Disk holds a few files, in memory, for one node. An unsynced write survives a
// power cut whole, in part, or not at all.
type Disk struct {
	// Full refuses writes that make a file longer.
	Full bool
	// Flipped says that a bit of the disk, or of the disk that it was copied
	// from, was flipped.
	Flipped bool
	// Before, if not nil, is called before each write and each sync. It may
	// end the process there, by a panic.
	Before func()

	world *World
	id    uint64
	cuts  uint64
	names []string // of files, in the order of their making
	files map[string]*File
}

// File is a file of a disk.
type File struct {
	disk *Disk
	data []byte
	// unsynced are the writes since the last sync, and the bytes that they replaced.
	unsynced []change
}

type change struct {
	at       int
	old, new []byte
	length   int // of the file before
}

// NewDisk is an empty disk. The id tells it from the other disks of the world.
func NewDisk(w *World, id int) *Disk {
	return &Disk{world: w, id: uint64(id), files: map[string]*File{}}
}

// File is the file of that name, empty if it is new.
func (d *Disk) File(name string) *File {
	f := d.files[name]
	if f == nil {
		f = &File{disk: d}
		d.files[name] = f
		d.names = append(d.names, name)
	}
	return f
}

// Remove empties the files whose names begin so, one after the other and durably.
func (d *Disk) Remove(prefix string) {
	d.before()
	for _, name := range d.names {
		if strings.HasPrefix(name, prefix) {
			f := d.files[name]
			f.data, f.unsynced = nil, nil
		}
	}
}

func (d *Disk) before() {
	if d.Before != nil {
		d.Before()
	}
}

// Bytes is what the process reads in the file. The caller must not change it.
func (f *File) Bytes() []byte { return f.data }

// Write writes at an offset, which must not lie beyond the end.
func (f *File) Write(at int, b []byte) error {
	f.disk.before()
	end := at + len(b)
	if end > len(f.data) && f.disk.Full {
		return ErrFull
	}
	c := change{at: at, new: slices.Clone(b), length: len(f.data), old: slices.Clone(f.data[at:min(end, len(f.data))])}
	f.unsynced = append(f.unsynced, c)
	f.put(at, b)
	return nil
}

func (f *File) put(at int, b []byte) {
	if grown := at + len(b) - len(f.data); grown > 0 {
		f.data = append(f.data, make([]byte, grown)...)
	}
	copy(f.data[at:], b)
}

// Replace makes b the content of the file, durably and in one step, as a file system
// does whose rename is atomic. It is written to another file, synced, renamed.
func (f *File) Replace(b []byte) error {
	f.disk.before()
	if f.disk.Full {
		return ErrFull
	}
	f.disk.before()
	f.data, f.unsynced = slices.Clone(b), nil
	return nil
}

// Truncate cuts the file off at a length, for good: it is for opening, when
// nothing is unsynced.
func (f *File) Truncate(length int) {
	f.disk.before()
	f.data = f.data[:length:length]
}

// Sync makes all writes so far survive a power cut.
func (f *File) Sync() {
	f.disk.before()
	f.unsynced = f.unsynced[:0]
}

// synced is the file as if nothing had been written since the last sync.
func (f *File) synced() []byte {
	if len(f.unsynced) == 0 {
		return f.data
	}
	data := slices.Clone(f.data)
	for _, c := range slices.Backward(f.unsynced) {
		copy(data[c.at:], c.old)
		data = data[:c.length]
	}
	return data
}

// PowerCut keeps, loses, or tears each unsynced write at some byte, independently
// of the others.
func (d *Disk) PowerCut() {
	d.cuts++
	for n, name := range d.names {
		f := d.files[name]
		data := slices.Clone(f.synced())
		writes := f.unsynced
		f.data, f.unsynced = data, nil
		for i, c := range writes {
			drawn := d.world.Draw(ForTear, d.id, d.cuts<<16|uint64(n), uint64(i))
			switch drawn % 3 {
			case 0: // lost
			case 1:
				f.put(c.at, c.new)
			case 2:
				f.put(c.at, c.new[:drawn>>8%uint64(len(c.new)+1)])
			}
		}
	}
}

// Copy is a new disk with the synced bytes.
func (d *Disk) Copy() *Disk {
	c := &Disk{world: d.world, id: d.id, cuts: d.cuts, Flipped: d.Flipped, names: slices.Clone(d.names), files: map[string]*File{}}
	for _, name := range d.names {
		c.files[name] = &File{disk: c, data: slices.Clone(d.files[name].synced())}
	}
	return c
}

// Flip turns one synced bit: the bit n mod 8 of the byte n/8, counted through all
// files and round again.
func (d *Disk) Flip(n uint64) {
	total := 0
	for _, name := range d.names {
		total += len(d.files[name].synced())
	}
	if total == 0 {
		return
	}
	at := int(n / 8 % uint64(total))
	for _, name := range d.names {
		f := d.files[name]
		if length := len(f.synced()); at >= length {
			at -= length
			continue
		}
		f.data[at] ^= 1 << (n % 8)
		d.Flipped = true
		return
	}
}
