package sim

import (
	"errors"
	"slices"
	"strings"
)

// ErrFull: the disk has no room left.
var ErrFull = errors.New("no space left on the disk")

// Disk holds a few files, in memory, for one node.
type Disk struct {
	// Full refuses what is to be written.
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

// File is a file of a disk: a list of entries. An entry that is not synced survives a
// power cut whole, or it is lost, and with it all that were appended later.
type File struct {
	disk    *Disk
	entries [][]byte // copies share them: none is changed in place
	synced  int      // how many of them survive a power cut
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
			f.entries, f.synced = nil, 0
		}
	}
}

func (d *Disk) before() {
	if d.Before != nil {
		d.Before()
	}
}

// Entries are what the process reads in the file. The caller must not change them.
func (f *File) Entries() [][]byte { return f.entries }

// Bytes are the content of a file that is replaced, never appended to; nil if it is new.
func (f *File) Bytes() []byte {
	if len(f.entries) == 0 {
		return nil
	}
	return f.entries[0]
}

// Append adds an entry, which the file keeps.
func (f *File) Append(entry []byte) error {
	f.disk.before()
	if f.disk.Full {
		return ErrFull
	}
	f.entries = append(f.entries, entry)
	return nil
}

// Replace makes b the content of the file, durably and in one step, as a file system
// does whose rename is atomic. It is written to another file, synced, renamed.
func (f *File) Replace(b []byte) error {
	f.disk.before()
	if f.disk.Full {
		return ErrFull
	}
	f.disk.before()
	f.entries, f.synced = [][]byte{b}, 1
	return nil
}

// Sync makes all entries so far survive a power cut.
func (f *File) Sync() {
	f.disk.before()
	f.synced = len(f.entries)
}

// PowerCut keeps of the entries that are not synced as many as the seed draws.
func (d *Disk) PowerCut() {
	d.cuts++
	for n, name := range d.names {
		f := d.files[name]
		unsynced := uint64(len(f.entries) - f.synced)
		f.synced += int(d.world.Draw(ForTear, d.id, d.cuts, uint64(n)) % (unsynced + 1))
		f.entries = f.entries[:f.synced:f.synced]
	}
}

// Copy is a new disk with the synced entries.
func (d *Disk) Copy() *Disk {
	c := &Disk{world: d.world, id: d.id, cuts: d.cuts, Flipped: d.Flipped, names: slices.Clone(d.names), files: map[string]*File{}}
	for _, name := range d.names {
		f := d.files[name]
		c.files[name] = &File{disk: c, entries: slices.Clone(f.entries[:f.synced]), synced: f.synced}
	}
	return c
}

// Flip turns a synced bit: the bit n mod 8 of the byte n/8, counted through all files and
// round again.
func (d *Disk) Flip(n uint64) {
	var synced []*[]byte
	total := 0
	for _, name := range d.names {
		f := d.files[name]
		for i := range f.entries[:f.synced] {
			synced = append(synced, &f.entries[i])
			total += len(f.entries[i])
		}
	}
	if total == 0 {
		return
	}
	at := int(n / 8 % uint64(total))
	for _, entry := range synced {
		if at < len(*entry) {
			*entry = slices.Clone(*entry)
			(*entry)[at] ^= 1 << (n % 8)
			d.Flipped = true
			return
		}
		at -= len(*entry)
	}
}
