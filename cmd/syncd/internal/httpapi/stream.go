package httpapi

import (
	"bufio"
	"io"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/syncd-io/syncd/cmd/syncd/internal/api"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
)

// RawRequest hands a handler the body as it comes, and the response.
type RawRequest struct {
	body  io.ReadCloser
	write http.ResponseWriter
}

// Resolve is called by huma before the handler.
func (b *RawRequest) Resolve(ctx huma.Context) []error {
	r, w := humago.Unwrap(ctx)
	b.body, b.write = r.Body, w
	return nil
}

var _ huma.Resolver = (*RawRequest)(nil)

// slowest is how long a client may take for what was written to it. One that is slower is cut.
const slowest = time.Minute

// timely bounds each write.
type timely struct {
	io.Writer
	control *http.ResponseController
}

func (t timely) Write(p []byte) (int, error) {
	_ = t.control.SetWriteDeadline(time.Now().Add(slowest)) // a test's recorder has no deadline
	return t.Writer.Write(p)
}

// stream is an answer that is written as it is found. It says once it cannot.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buf     *bufio.Writer
	dirty   bool // something was written since the last flush
	err     error
}

func newStream(w http.ResponseWriter) stream {
	control := http.NewResponseController(w)
	return stream{w: w, control: control, buf: bufio.NewWriterSize(timely{w, control}, 16<<10)}
}

func (o *stream) Write(p []byte) (n int, err error) {
	if o.err == nil {
		o.dirty = true
		n, o.err = o.buf.Write(p)
	}
	return n, o.err
}

// flush sends what was written.
func (o *stream) flush() {
	if !o.dirty || o.err != nil {
		return
	}
	o.dirty = false
	if o.err = o.buf.Flush(); o.err == nil {
		_ = o.control.Flush() // a test's recorder may have nothing to flush
	}
}

// end sends the rest, and lifts the bound: another request may follow on the connection.
func (o *stream) end() {
	o.flush()
	_ = o.control.SetWriteDeadline(time.Time{})
}

const linesType = "application/x-ndjson"

// lines are lines of JSON, of a schema or of any.
func lines(of *huma.Schema) map[string]*huma.MediaType {
	return map[string]*huma.MediaType{linesType: {Schema: of}}
}

// lineAge is for how long a line of an answer may wait for others before it is sent.
const lineAge = 100 * time.Millisecond

// lineWriter writes JSON lines.
type lineWriter struct {
	stream
	begun bool
	sent  time.Time
}

func newLineWriter(w http.ResponseWriter) *lineWriter {
	return &lineWriter{stream: newStream(w), sent: time.Now()}
}

func (o *lineWriter) line(v any) {
	if !o.begun {
		o.begun = true
		o.w.Header().Set("Content-Type", linesType)
	}
	if err := api.WriteJSON(o, v, ""); o.err == nil {
		o.err = err
	}
	if time.Since(o.sent) >= lineAge {
		o.flush()
		o.sent = time.Now()
	}
}

// refuse is the answer in the place of lines, or the last line, which has the problem.
func (o *lineWriter) refuse(p *problem.Problem, last any) {
	if o.begun {
		o.line(last)
	} else {
		writeProblem(o.w, p)
	}
}
