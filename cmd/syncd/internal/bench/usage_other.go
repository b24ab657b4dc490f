//go:build !linux

package bench

func used() Usage { return Usage{} }
