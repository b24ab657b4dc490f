package floors

// module is the path that the project's own imports begin with.
const module = "github.com/syncd-io/syncd"

// floors, from the ground up. A package imports packages of lower floors only;
// its tests may also import packages of its own floor (the tests of a store on disk
// run the suite beside it).
var floors = [][]string{
	{"bfield/internal/saved", "bfield/internal/workers", "bfield/keyed"},
	{"bfield/internal/fieldtest", "internal/child", "internal/golden", "internal/hlc", "internal/keyhash", "internal/loglimit", "internal/machine", "internal/pgserver", "internal/plot", "internal/powercut", "internal/seeded", "internal/signature"},
	{"bfield/keyset", "dbadapter", "iblt", "iblt/rateless"},
	{"dbadapter/internal/commit", "dbadapter/internal/damage", "dbadapter/internal/kv", "dbadapter/internal/lifecycle", "dbadapter/internal/queue", "dbadapter/internal/seq", "internal/coded", "internal/durable", "internal/rangesum", "internal/roster", "iblt/examples/flowtracker", "iblt/examples/oblivious", "iblt/paper"},
	{"bfield", "bfield/bloom", "bfield/cuckoo", "bfield/ribbon"},
	{"bfield/nested", "bfield/phf"},
	{"internal/quorum"},
	{"dbadapter/internal/examiner", "dbadapter/internal/layout", "internal/backup", "internal/placement"},
	{"dbadapter/internal/grouped"},
	{"dbadapter/internal/badgerkv", "dbadapter/internal/kvstore", "dbadapter/internal/pebblekv", "dbadapter/memdb", "dbadapter/storetest", "internal/bodies", "internal/locator"},
	{"dbadapter/internal/disktest", "dbadapter/ondisk", "dbadapter/pgdb", "reconcile/wire"},
	{"reconcile"},
	{"peer/status"},
	{"internal/refusals", "internal/watermark"},
	{"internal/clocks", "internal/membership", "internal/metrics", "internal/netio/stream", "internal/syncing", "reconcile/replica"},
	{"internal/changes", "internal/gc", "internal/netio", "internal/push"},
	{"internal/node"},
	{"internal/ask", "internal/importing", "internal/mesh"},
	{"internal/shards"},
	{"internal/routing"},
	{"testnet/internal/check", "testnet/internal/failing", "testnet/internal/plan", "testnet/internal/sim", "testnet/scenarios"},
	{"testnet/internal/model"},
	{"testnet"},
	{"internal/folder"},
	{"internal/damage", "peer/offline"},
	{"peer"},
	{"testnet/testnettest"},
	{"peer/example/notes", "testnet/example/tally"},
	{
		"cmd/syncd/internal/advice", "cmd/syncd/internal/api", "cmd/syncd/internal/jsonlines",
		"cmd/syncd/internal/progress", "cmd/syncd/internal/settings",
	},
	{"cmd/syncd/internal/problem"},
	{"cmd/syncd/internal/endpoint", "cmd/syncd/internal/pair"},
	{"cmd/syncd/internal/bench", "cmd/syncd/internal/demo"},
	// The client and the server do not import one another; the server's tests
	// speak through the client.
	{"cmd/syncd/internal/client", "cmd/syncd/internal/httpapi"},
	{"cmd/syncd/internal/cli", "cmd/syncd/internal/simulate"},
	{"cmd/syncd", "cmd/syncd/syncd-testnet"},
	// Tests of the whole, which nothing imports.
	{"cmd/syncd/systemtest", "internal/floors"},
}

// upward are the tests that import a package of a higher floor, and why.
var upward = map[[2]string]string{
	{"internal/node", "internal/ask"}:  "what members ask one another is tested among the nodes in memory of package node's tests",
	{"reconcile", "reconcile/replica"}: "the runnable example syncs two stores",
}

// fences says which packages alone may import, in code that is no test, a
// library or a part of the standard library. A name that ends in "/..." stands
// for all packages below.
var fences = []fence{
	{
		imports: []string{"github.com/cockroachdb/pebble"},
		only:    []string{"dbadapter/internal/pebblekv"},
		why:     "an engine is behind dbadapter/internal/kv, so that a store is the same over each",
	},
	{
		imports: []string{"github.com/dgraph-io/badger"},
		only:    []string{"dbadapter/internal/badgerkv"},
		why:     "the store is behind dbadapter.Store, so that another one can take its place",
	},
	{
		imports: []string{"github.com/oasisprotocol/curve25519-voi"},
		only:    []string{"internal/signature"},
		why:     "every signature is verified by one rule; crypto/ed25519 has another",
	},
	{
		imports: []string{"github.com/jackc/pgx"},
		only:    []string{"dbadapter/pgdb"},
		why:     "the store is behind dbadapter.Store, so that another one can take its place",
	},
	{
		imports: []string{"github.com/libp2p", "github.com/multiformats/go-multiaddr"},
		only:    []string{"internal/folder", "internal/mesh", "internal/netio", "internal/netio/...", "internal/routing", "peer", "peer/offline", "peer/status", "testnet/testnettest", "cmd/syncd", "cmd/syncd/internal/..."},
		why:     "the protocol is pure; only peer, mesh, routing and netio know the network, and the tests' nodes what breaks it; the others name nodes by libp2p's ids",
	},
	{
		imports: []string{"net", "net/http", "os", "os/exec", "syscall"},
		only:    []string{"bfield", "dbadapter/internal/badgerkv", "dbadapter/internal/damage", "dbadapter/internal/disktest", "dbadapter/internal/examiner", "dbadapter/internal/kvstore", "dbadapter/internal/pebblekv", "dbadapter/pgdb", "iblt/examples/flowtracker", "iblt/paper", "internal/backup", "internal/child", "internal/damage", "internal/durable", "internal/folder", "internal/golden", "internal/netio", "internal/netio/...", "internal/pgserver", "internal/powercut", "peer", "peer/example/notes", "peer/offline", "testnet/testnettest", "cmd/syncd", "cmd/syncd/internal/...", "cmd/syncd/syncd-testnet"},
		why:     "everything below peer but its network is a function of its inputs; sockets and files are handed in",
	},
	{
		imports: []string{"github.com/alecthomas/kong", "go.yaml.in/yaml", "github.com/vbauerster/mpb", "github.com/charmbracelet"},
		only:    []string{"cmd/syncd", "cmd/syncd/internal/..."},
		why:     "only the command reads flags, files and environment, or draws on a terminal",
	},
	{
		imports: []string{module + "/testnet", module + "/internal/plot"},
		only:    []string{"testnet", "testnet/...", "iblt/paper", "cmd/syncd/internal/simulate"},
		why:     "the daemon links neither the simulator nor what draws",
	},
	{
		imports: []string{module + "/cmd/syncd/internal/simulate"},
		only:    []string{"cmd/syncd/syncd-testnet"},
		why:     "the daemon links neither the simulator nor what draws",
	},
	{
		imports: []string{"go.uber.org/zap"},
		only:    []string{"cmd/syncd/internal/cli"},
		why:     "packages log to the *slog.Logger that their caller gives; the daemon alone chooses what is behind it",
	},
	{
		imports: []string{module + "/internal/child", module + "/internal/golden", module + "/internal/pgserver", module + "/internal/powercut"},
		only:    []string{"dbadapter/internal/disktest"},
		why:     "it is for tests",
	},
	{
		imports: []string{"testing", "pgregory.net/rapid", "go.uber.org/goleak"},
		only:    []string{"bfield/internal/fieldtest", "dbadapter/internal/disktest", "dbadapter/storetest", "internal/child", "internal/golden", "internal/pgserver", "internal/powercut", "internal/seeded", "testnet/internal/failing", "testnet/testnettest"},
		why:     "test code stays in tests; the conformance suite and the nodes are for the tests of others",
	},
}

// banned are package names that say nothing of what is inside.
var banned = []string{"util", "utils", "common", "helper", "helpers", "types", "config", "misc", "shared"}
