module github.com/syncd-io/syncd/bench

go 1.26.0

replace github.com/syncd-io/syncd => ../

require golang.org/x/perf v0.0.0-20260908200009-22c9c6c9d4da // indirect
