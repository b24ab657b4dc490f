package reconcile

// Report tells what a sync found and did, seen from the side that holds it.
// Counters that need a clock or a socket (bytes on the wire, durations) are
// filled in by whoever drives the session.
type Report struct {
	Namespace string `json:"ns"`
	Peer      string `json:"peer"`
	// Method is how the differences were found: "same", "sketch" or "all".
	Method string `json:"method"`
	// Rounds counts round trips from the initiator until it held everything.
	Rounds int `json:"rounds"`
	// Cells counts the cells that travelled, SketchBytes their bytes with the
	// probes for the estimate.
	Cells       int   `json:"cells"`
	SketchBytes int64 `json:"sketch_bytes"`
	// RecordBytes are the bytes of the frames of records, both ways.
	RecordBytes       int64 `json:"record_bytes"`
	WireBytesSent     int64 `json:"wire_bytes_sent"`
	WireBytesReceived int64 `json:"wire_bytes_received"`
	// The differences found, in indices: each is one record but for keys that
	// share an index.
	MissingHere  int `json:"missing_here"`
	MissingThere int `json:"missing_there"`
	Mismatched   int `json:"mismatched"`
	// Applied counts the records received that are now held here, Sent those
	// sent to the peer, Rejected those that either side refused.
	Applied  int `json:"applied"`
	Sent     int `json:"sent"`
	Rejected int `json:"rejected"`
	// Estimate is the number of differences guessed before the cells were
	// asked for; 0 if the first ones were enough.
	Estimate int64 `json:"estimate"`
	// ForecastBytes is what the sync was expected to cost, both ways, as far
	// as this side can tell before records travel.
	ForecastBytes int64 `json:"forecast_bytes"`
	// Repair is how a decode that did not prove itself was mended; empty if
	// there was no need.
	Repair string `json:"repair"`
	// DurationMS and StepsMS are milliseconds.
	DurationMS float64            `json:"duration_ms"`
	StepsMS    map[string]float64 `json:"steps_ms"`
	// Verified says that both sets were proved equal but for the differences
	// listed, and that all of those were exchanged; of a dry run, which
	// exchanges none, only the first. A sync of one direction that left
	// something for the other is not verified.
	Verified bool `json:"verified"`
}

// Differences is the number of differing indices found.
func (r *Report) Differences() int { return r.MissingHere + r.MissingThere + r.Mismatched }

// Step names a step of a sync, in code, logs, metrics and reports alike.
type Step int

// The steps, in order.
const (
	StepSketch Step = iota
	StepSubtract
	StepPeel
	StepFetch
	StepApply
	StepVerify
	steps
)

// stepNames are what code, logs, metrics and reports call the steps.
var stepNames = [steps]string{"sketch", "subtract", "peel", "fetch", "apply", "verify"}

// String is the step's name.
func (s Step) String() string { return stepNames[s] }

// Steps lists all steps in order.
func Steps() []Step {
	all := make([]Step, steps)
	for i := range all {
		all[i] = Step(i)
	}
	return all
}
