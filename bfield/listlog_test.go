package bfield

import (
	"iter"
	"sync"
)

// listLog is a Log in memory that can be told to fail.
type listLog struct {
	seed     uint64
	mu       sync.Mutex
	list     []Record
	failing  error // of Append and Replace
	damaged  error // of Records
	replaced int
	reading  func(i int)  // called before record i of a scan is yielded
	scanning func() error // called at the start of a scan
}

func (l *listLog) Append(records []Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failing == nil {
		l.list = append(l.list, records...)
	}
	return l.failing
}

func (l *listLog) Records(from uint64) iter.Seq2[Record, error] {
	l.mu.Lock()
	defer l.mu.Unlock()
	list, damaged, scanning := l.list[from:len(l.list):len(l.list)], l.damaged, l.scanning
	return func(yield func(Record, error) bool) {
		if scanning != nil {
			if err := scanning(); err != nil {
				yield(Record{}, err)
				return
			}
		}
		if damaged != nil {
			yield(Record{}, damaged)
			return
		}
		for i, r := range list {
			if l.reading != nil {
				l.reading(i)
			}
			if !yield(r, nil) {
				return
			}
		}
	}
}

func (l *listLog) Seed() uint64 { return l.seed }

func (l *listLog) Len() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return uint64(len(l.list))
}

func (l *listLog) Replace(records iter.Seq2[Record, error]) error {
	var list []Record
	for r, err := range records {
		if err != nil {
			return err
		}
		list = append(list, r)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failing == nil {
		l.list = list
		l.replaced++
	}
	return l.failing
}
