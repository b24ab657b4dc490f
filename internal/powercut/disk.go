//go:build linux

package powercut

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Disk is a mounted image. It is used from one goroutine.
type Disk struct {
	work string // a tmpfs that holds the images, and the folder of the mount
}

// New makes an empty disk of the given size, in bytes, and unmounts it when the
// test ends. Its images lie in memory and take what is written, not their full
// size.
func New(t testing.TB, size int64) *Disk {
	t.Helper()
	d := &Disk{work: t.TempDir()}
	if err := run("mount", "-t", "tmpfs", "-o", "mode=0700", "tmpfs", d.work); err != nil {
		t.Fatalf("%v; a power cut needs root and mount", err)
	}
	// Lazily: a process that is ending, or another mount namespace, may still hold the
	// disk. Then it leaves this one at once, and goes with its last user.
	unmount := func(folder string) func() {
		return func() {
			if err := run("umount", "--lazy", folder); err != nil {
				t.Error(err)
			}
		}
	}
	t.Cleanup(unmount(d.work))
	if err := d.format(size); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(unmount(d.Dir()))
	return d
}

func (d *Disk) format(size int64) error {
	if err := os.WriteFile(d.image(), nil, 0o600); err != nil {
		return err
	}
	if err := os.Truncate(d.image(), size); err != nil {
		return err
	}
	// Lazy initialization would write to the image on its own later on.
	if err := os.Mkdir(d.Dir(), 0o700); err != nil {
		return err
	}
	err := run("mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", d.image())
	if err != nil {
		return fmt.Errorf("%w; a power cut needs mkfs.ext4 (Debian: e2fsprogs)", err)
	}
	return d.mount()
}

// mount mounts the image. The journal is committed by syncs alone. The kernel must not
// write on its own while the image is copied, and saves nothing that the program did
// not ask it to.
func (d *Disk) mount() error {
	if err := run("mount", "-t", "ext4", "-o", "loop,commit=600", d.image(), d.Dir()); err != nil {
		return fmt.Errorf("%w; a power cut needs root and a free loop device (/dev/loop-control)", err)
	}
	return nil
}

// Dir is the folder that the disk is mounted on.
func (d *Disk) Dir() string { return filepath.Join(d.work, "disk") }

func (d *Disk) image() string { return filepath.Join(d.work, "image") }
func (d *Disk) copy() string  { return filepath.Join(d.work, "copy") }

// Cut stops the process, which writes to the disk, and notes what the disk
// holds at that moment. The process stays stopped, for the caller to kill;
// when it is dead, Restore shows the disk as it was.
func (d *Disk) Cut(pid int) error {
	if err := stop(pid); err != nil {
		return err
	}
	return copyStill(d.image(), d.copy())
}

// Restore brings the power back: the disk is mounted anew, at the same folder,
// with what it held when Cut was called. No process may use it at that time.
func (d *Disk) Restore() error {
	if err := letGo(d.Dir()); err != nil {
		return err
	}
	if err := os.Rename(d.copy(), d.image()); err != nil {
		return err
	}
	return d.mount()
}

// letGo unmounts a folder. Its last user may be gone and not let go of it yet, where the
// kernel closes a killed process's files behind it. No event tells when it has. On a
// machine that is busy with other things that took more than two seconds.
func letGo(folder string) error {
	for until := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		err := run("umount", folder)
		if err == nil || !strings.Contains(err.Error(), "busy") || time.Now().After(until) {
			return err
		}
	}
}

// copyStill copies the image, again if it changed in the meantime: a copy of
// a moving image would be of no single moment.
func copyStill(from, to string) error {
	var changed error
	for range 10 {
		if err := run("cp", "--sparse=always", from, to); err != nil {
			return err
		}
		if changed = run("cmp", from, to); changed == nil {
			return nil
		}
	}
	return fmt.Errorf("the disk image never came to rest: %w", changed)
}

func run(name string, arguments ...string) error {
	out, err := exec.Command(name, arguments...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s %q: %w: %s", name, arguments, err, out)
	}
	return nil
}
