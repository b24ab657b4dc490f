// Package systemtest tests the command as a user has it: processes of the
// built binary, stores on disk, TCP on loopback. It has no code but tests.
//
// What is tried there cannot be tried within one process: kill -9 in each step
// of a sync, and a power cut. In both, every write that was acknowledged must
// be found again, the next sync must finish, and then the exports of both
// daemons must be equal, byte for byte.
package systemtest
