package syncing

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/syncd-io/syncd/reconcile"
	"github.com/syncd-io/syncd/reconcile/wire"
)

// The conversations of a sync, by what each one comes to.
func TestPlan(t *testing.T) {
	lists, denied := reconcile.ErrListsDiffer, reconcile.ErrDenied
	for name, c := range map[string]struct {
		news bool // in the control namespace, since it was found equal
		ask  Ask
		says []error // of the conversations, in turn
		want string  // which those are: d data, D data though the lists differ, c control, i introduction
		err  error
	}{
		"equal lists":               {says: []error{nil}, want: "d"},
		"lists differ":              {says: []error{lists, nil, nil}, want: "dcd"},
		"and go on changing":        {says: []error{lists, nil, lists, nil, nil}, want: "dcdcD"},
		"for ever":                  {says: []error{lists, nil, lists, nil, lists}, want: "dcdcD", err: lists},
		"of the list itself":        {says: []error{lists, lists}, want: "dc", err: lists},
		"what can be is synced":     {says: []error{lists, ErrRejected, nil}, want: "dcd"},
		"the list is not proved":    {says: []error{lists, reconcile.ErrNotVerified, nil}, want: "dcd"},
		"unheard":                   {says: []error{denied, nil, lists, nil, nil}, want: "didcd"},
		"the peer has no such":      {says: []error{denied, denied}, want: "di", err: denied},
		"denied all the same":       {says: []error{denied, nil, denied}, want: "did", err: denied},
		"the peer is gone":          {says: []error{reconcile.ErrUnreachable}, want: "d", err: reconcile.ErrUnreachable},
		"it goes meanwhile":         {says: []error{lists, reconcile.ErrUnreachable}, want: "dc", err: reconcile.ErrUnreachable},
		"a dry run changes nothing": {ask: Ask{DryRun: true}, says: []error{denied}, want: "D", err: denied},
		"news beside the list":      {news: true, says: []error{nil, nil}, want: "cd"},
		"news, unheard":             {news: true, says: []error{denied, nil, nil, nil}, want: "cicd"},
		"news, and a dry run":       {news: true, ask: Ask{DryRun: true}, says: []error{nil}, want: "D"},
		"news, and a part":          {news: true, ask: Ask{Prefix: []byte("a")}, says: []error{nil}, want: "d"},
		"records are declined":      {says: []error{ErrRejected}, want: "d", err: ErrRejected},
		"the members alone":         {ask: Ask{Control: true}, says: []error{nil}, want: "c"},
	} {
		plan := NewPlan(c.ask, PlanConfig{News: c.news, Denied: func(err error) error { return fmt.Errorf("why: %w", err) }})
		var got strings.Builder
		for i, err := range c.says {
			a, more := plan.next()
			if !more {
				break
			}
			switch {
			case a.Control && a.Direction == wire.Push:
				got.WriteString("i")
			case a.Control:
				got.WriteString("c")
			case a.ListsMayDiffer:
				got.WriteString("D")
			default:
				got.WriteString("d")
			}
			plan.ended(a, reconcile.Report{Sent: i}, err)
		}
		_, more := plan.next()
		report, err := plan.result()
		if more || got.String() != c.want || !errors.Is(err, c.err) || c.err == nil && err != nil {
			t.Errorf("%s: %s, more %t, %v", name, &got, more, err)
		}
		if c.err == denied && !strings.HasPrefix(err.Error(), "why: ") {
			t.Errorf("%s: %v does not say what the peer's denial means", name, err)
		}
		if err == nil && report.Sent != len(c.says)-1 {
			t.Errorf("%s: the report is that of conversation %d", name, report.Sent)
		}
	}
}

// What a sync that ran to its end has shown.
func TestProved(t *testing.T) {
	for i, c := range []struct {
		ask  Ask
		r    reconcile.Report
		want error
	}{
		{Ask{}, reconcile.Report{Verified: true}, nil},
		{Ask{}, reconcile.Report{}, reconcile.ErrNotVerified},
		{Ask{}, reconcile.Report{Rejected: 2}, ErrRejected},
		{Ask{DryRun: true}, reconcile.Report{}, nil},
		{Ask{DryRun: true}, reconcile.Report{Rejected: 2}, nil},
		{Ask{Direction: wire.Pull}, reconcile.Report{}, nil},
		{Ask{Direction: wire.Push}, reconcile.Report{}, nil},
		{Ask{Direction: wire.Pull}, reconcile.Report{Rejected: 2}, ErrRejected},
		{Ask{Direction: wire.Push}, reconcile.Report{Rejected: 2}, ErrRejected},
		{Ask{Direction: wire.Pull}, reconcile.Report{Verified: true}, nil},
		{Ask{Prefix: []byte("p")}, reconcile.Report{}, reconcile.ErrNotVerified},
	} {
		if err := Proved(c.ask, &c.r); !errors.Is(err, c.want) || c.want == nil && err != nil {
			t.Errorf("case %d: %v, want %v", i, err, c.want)
		}
	}
}
