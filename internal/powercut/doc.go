// Package powercut is a disk whose power can be cut, for tests of durability.
//
//	disk := powercut.New(t, 256<<20)          // an ext4 file system at disk.Dir()
//	// … a process writes below disk.Dir() and acknowledges its writes …
//	err := disk.Cut(pid)                      // the process stands; the image is copied
//	// … kill the process …
//	err = disk.Restore()                      // disk.Dir() shows what the disk held
//	// … open the store there: is every acknowledged write in it?
//
// The disk is an image file behind a loop device. What a process has written but not
// synced lies in the kernel's memory, not in the image. So a copy of the image taken
// while the process is stopped is what a machine would find after the power is back.
// Kill -9 alone does not show that: the kernel writes a dead process's pages all the
// same.
//
// A test that can only pass proves nothing: Unsynced starts a program whose
// syncs do nothing, for the counter-proof that writes are lost then.
//
// The model is that of a disk which keeps what it has been given. Disks that
// lose their own cache in spite of a flush are not modelled.
//
// It needs Linux, root, mount, mkfs.ext4 and a loop device.
package powercut
