package check

import "fmt"

// Met says what a meeting of first writes of a key lacks, when all nodes are equal; empty: nothing.
// Of acknowledged writes that had not seen one another one stands, alone, and each other one is a
// listed conflict.
func (w *Written) Met(f *WrittenFinal) string {
	stands := f.Records[f.Named]
	if len(f.Records) != 1 || stands == nil {
		return fmt.Sprintf("%d records of it are left, and its entry names shard %d", len(f.Records), f.Named)
	}
	lost, known := 0, false
	for i := range w.ops {
		o := &w.ops[i]
		switch v := stands.Version; {
		case o.key != f.Key || o.deletes || !o.ack:
		case o.version == v:
			known = true
		case w.over[o.version][v] || w.over[v][o.version]:
		case !w.conflicts[o.version]:
			return fmt.Sprintf("version %s has lost, and no host lists it as a conflict", o.version)
		default:
			lost++
		}
	}
	switch {
	case !known:
		return fmt.Sprintf("version %s stands, which is of no acknowledged write", stands.Version)
	case lost == 0:
		return "the record that stands has met no other write"
	}
	return ""
}
