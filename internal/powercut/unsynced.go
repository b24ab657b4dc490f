//go:build linux

package powercut

import (
	"fmt"
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

// Unsynced replaces this process by the program at path, in which fsync,
// fdatasync and msync succeed and do nothing. It returns only on failure. A
// test calls it in a child process, since there is no way back.
//
// It is done by a seccomp filter (seccomp(2)), which the kernel asks about each system
// call of the program. A call that the filter answers with "error 0" is not executed
// and returns 0.
func Unsynced(path string, arguments []string) error {
	// The filter is the thread's, and the thread that calls exec goes on.
	runtime.LockOSThread()
	const (
		load   = 0x20 // BPF_LD | BPF_W | BPF_ABS
		equal  = 0x15 // BPF_JMP | BPF_JEQ | BPF_K
		answer = 0x06 // BPF_RET | BPF_K

		allow    = 0x7fff0000 // SECCOMP_RET_ALLOW
		noError  = 0x00050000 // SECCOMP_RET_ERRNO, error 0
		noGain   = 38         // PR_SET_NO_NEW_PRIVS
		seccomp  = 22         // PR_SET_SECCOMP
		byFilter = 2          // SECCOMP_MODE_FILTER
	)
	filter := []syscall.SockFilter{
		{Code: load, K: 0}, // the number of the call
		{Code: equal, K: syscall.SYS_FSYNC, Jt: 3},
		{Code: equal, K: syscall.SYS_FDATASYNC, Jt: 2},
		{Code: equal, K: syscall.SYS_MSYNC, Jt: 1},
		{Code: answer, K: allow},
		{Code: answer, K: noError},
	}
	program := syscall.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, e := syscall.RawSyscall6(syscall.SYS_PRCTL, noGain, 1, 0, 0, 0, 0); e != 0 {
		return fmt.Errorf("giving up privileges before a seccomp filter: %w", e)
	}
	if _, _, e := syscall.RawSyscall6(syscall.SYS_PRCTL, seccomp, byFilter, uintptr(unsafe.Pointer(&program)), 0, 0, 0); e != 0 {
		return fmt.Errorf("setting a seccomp filter: %w", e)
	}
	err := syscall.Exec(path, append([]string{path}, arguments...), os.Environ())
	return fmt.Errorf("starting %s: %w", path, err)
}
