//go:build !linux

package bench

import "errors"

func used() Usage { return Usage{} }

const canForget = false

func forget(string) error { return errors.ErrUnsupported }
