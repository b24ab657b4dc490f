package queue

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/syncd-io/syncd/dbadapter"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The batches that wait while a commit runs are committed together, as many as fit,
// and a function runs between two commits; what was withdrawn is left out.
func TestGroups(t *testing.T) {
	groups, goOn := make(chan []int), make(chan struct{})
	q := Start(func(group []*Request[int], _ func()) func() {
		var batches []int
		for _, r := range group {
			batches = append(batches, r.Batch)
		}
		groups <- batches
		<-goOn
		return nil
	})
	const half = dbadapter.MaxBatch / 2
	results := make(chan error, 6)
	queueUp := func(ctx context.Context, r *Request[int]) {
		waiting := q.Len()
		go func() { results <- q.Submit(ctx, r) }()
		for q.Len() == waiting {
			if len(results) > 0 {
				t.Fatal(<-results)
			}
		}
	}
	go func() { results <- q.Submit(t.Context(), &Request[int]{Batch: 1, Writes: half}) }()
	expect := func(want ...int) {
		t.Helper()
		got := <-groups
		if len(got) != len(want) {
			t.Fatalf("the group %v is committed, want %v", got, want)
		}
		for i := range got {
			if got[i] != want[i] {
				t.Fatalf("the group %v is committed, want %v", got, want)
			}
		}
	}
	expect(1)
	withdrawn, withdraw := context.WithCancel(t.Context())
	queueUp(t.Context(), &Request[int]{Batch: 2, Writes: half})
	queueUp(withdrawn, &Request[int]{Batch: 3})
	queueUp(t.Context(), &Request[int]{Batch: 4, Writes: half, Size: dbadapter.MaxBatchBytes - 1})
	queueUp(t.Context(), &Request[int]{Batch: 5, Size: 2})
	ran := make(chan struct{})
	go func() { results <- q.Do(t.Context(), func() error { close(ran); return errors.New("ran") }) }()
	for q.Len() < 5 {
	}
	withdraw()
	if err := <-results; !errors.Is(err, context.Canceled) {
		t.Errorf("what was withdrawn ends with %v", err)
	}
	goOn <- struct{}{}
	expect(2, 4)
	goOn <- struct{}{}
	expect(5)
	goOn <- struct{}{}
	<-ran
	q.Stop()
	q.Stop()
	failed := 0
	for range 5 {
		if err := <-results; err != nil {
			failed++
		}
	}
	if failed != 1 {
		t.Errorf("%d requests failed, want that of the function alone", failed)
	}
	if err := q.Do(t.Context(), func() error { return nil }); !errors.Is(err, dbadapter.ErrClosed) {
		t.Errorf("a queue that was stopped says %v", err)
	}
}

// TestFunctionBehindWithdrawn: a function runs only when nothing lands, also where a large
// batch that was withdrawn stood before it.
func TestFunctionBehindWithdrawn(t *testing.T) {
	prepares, prepared := make(chan struct{}), make(chan struct{})
	lands, landed := make(chan struct{}), make(chan struct{})
	q := Start(func([]*Request[int], func()) func() {
		prepares <- struct{}{}
		<-prepared
		return func() {
			close(lands)
			<-landed
		}
	})
	defer q.Stop()
	results := make(chan error, 2)
	go func() { results <- q.Submit(t.Context(), &Request[int]{Writes: Large}) }()
	<-prepares
	withdrawn, withdraw := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() { gone <- q.Submit(withdrawn, &Request[int]{Writes: Large}) }()
	for q.Len() < 1 {
		runtime.Gosched()
	}
	withdraw()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Errorf("what was withdrawn ends with %v", err)
	}
	ran := make(chan struct{})
	go func() { results <- q.Do(t.Context(), func() error { close(ran); return nil }) }()
	for q.Len() < 2 {
		runtime.Gosched()
	}
	close(prepared)
	<-lands
	select {
	case <-ran:
		t.Error("the function ran while a batch landed")
	case <-time.After(100 * time.Millisecond):
	}
	close(landed)
	for range 2 {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
}
