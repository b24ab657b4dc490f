//go:build !amd64

package ribbon

// fetch reads from all cache lines of the places. The processor works on
// several reads at once.
func fetch(places []place) { touch(places) }
