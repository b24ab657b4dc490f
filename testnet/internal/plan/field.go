package plan

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// field is a named value of a plan, as a text reads and prints it: a setting, or a part
// "name=value" of a line. print reports whether the field is there at all.
type field struct {
	name  string
	read  func(text string) error
	print func() (text string, there bool)
}

// value is a field of v, which is there if it is not zero.
func value[T comparable](name string, v *T, read func(text string) (T, error), print func(T) string) field {
	return field{name, func(text string) (err error) {
		*v, err = read(text)
		return err
	}, func() (string, bool) { return print(*v), *v != *new(T) }}
}

// always is a field that is printed also where it is zero.
func (f field) always() field {
	print := f.print
	f.print = func() (string, bool) {
		text, _ := print()
		return text, true
	}
	return f
}

func counted[T int | int64](name string, n *T, least, most int) field {
	return value(name, n, func(text string) (T, error) {
		n, err := number(name, text, least, most)
		return T(n), err
	}, func(n T) string { return strconv.Itoa(int(n)) })
}

func sized(name string, n *int) field {
	return value(name, n, func(text string) (int, error) { return byteSize(name, text) }, size)
}

func lasting(name string, d *time.Duration, least, most time.Duration) field {
	return value(name, d, func(text string) (time.Duration, error) { return duration(name, text, least, most) }, span)
}

func shared(name string, f *float64) field {
	return value(name, f, func(text string) (float64, error) { return probability(name, text) }, share)
}

// named is a field of one word; what says of which kind.
func named(name, what string, s *string) field {
	return text(name, s, func(text string) error { return checkWord(what, text) })
}

// text is a field of a text as it stands, if that is right.
func text(name string, s *string, right func(text string) error) field {
	return value(name, s, func(text string) (string, error) { return text, right(text) }, func(text string) string { return text })
}

// choice is a field of one word of a list; what says of which kind.
func choice[T ~string](name, what string, s *T, list []T) field {
	return value(name, s, func(text string) (T, error) { return oneOf(what, text, list) }, func(word T) string { return string(word) })
}

// flag is a field that stands by itself.
func flag(name string, so *bool) field {
	return field{name, func(text string) error {
		if *so = true; text != "" {
			return fmt.Errorf("%q follows %q; it stands by itself", text, name)
		}
		return nil
	}, func() (string, bool) { return "", *so }}
}

// settings are those of a plan, in their usual order.
func settings(p *Plan) []field {
	return []field{
		named("name", "name", &p.Name),
		counted("nodes", &p.Nodes, 1, MaxNodes),
		value("seed", &p.Seed, func(text string) (uint64, error) {
			seed, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				err = fmt.Errorf("seed %q: want a number from 0 to 2^64−1", text)
			}
			return seed, err
		}, func(seed uint64) string { return strconv.FormatUint(seed, 10) }).always(),
		value("net", &p.Net, func(text string) (n Net, err error) { return n, readParts("net", text, n.fields()) }, func(n Net) string { return printParts(n.fields()) }),
		lasting("every", &p.Every, time.Millisecond, MaxTime),
		lasting("skew", &p.Skew, 0, MaxTime).always(),
		counted("checksums", &p.Checksums, 1, ChecksumBits),
		counted("indices", &p.Indices, 1, MaxEvents),
		named("ground", "prefix", &p.Ground),
		counted("log", &p.Log, 1, MaxEvents),
		{"shards", p.parseShards, func() (string, bool) { return p.printShards(), p.Shards > 0 }},
		flag("signed", &p.Signed),
		flag("push", &p.Push),
		flag("alone", &p.Alone),
		lasting(settle, &p.Settle, 0, MaxTime).always(),
	}
}

// settle is the setting that stands below all events.
const settle = "settle"

func (n *Net) fields() []field {
	return []field{
		lasting("delay", &n.Delay, 0, time.Hour), lasting("jitter", &n.Jitter, 0, time.Hour),
		shared("loss", &n.Loss), shared("duplicate", &n.Duplicate), shared("reorder", &n.Reorder),
	}
}

func (r *Random) fields() []field {
	of := func(name string, n *int) field { return counted(name, n, 0, MaxEvents) }
	return []field{
		of("writes", &r.Writes), of("keys", &r.Keys), sized("size", &r.Size), of("syncs", &r.Syncs), of("members", &r.Members),
		of("asks", &r.Asks), of("watches", &r.Watches), of("gets", &r.Gets), of("faults", &r.Faults),
		choice("profile", "profile", &r.Profile, Profiles()),
	}
}

func (w *Watching) fields() []field {
	return []field{
		{"from", func(text string) error {
			if w.FromStart = text == "start"; !w.FromStart {
				return fmt.Errorf("from %q: want start; without it a program goes on where it was", text)
			}
			return nil
		}, func() (string, bool) { return "start", w.FromStart }},
		named("prefix", "prefix", &w.Prefix),
		lasting("pace", &w.Pace, time.Millisecond, time.Hour),
	}
}

// readParts reads the parts "name=value" of a line, each once.
func readParts(of, line string, fields []field) error {
	if line == "" {
		return errors.New("want parts as in delay=10ms")
	}
	seen := map[string]bool{}
	for part := range strings.FieldsSeq(line) {
		name, text, ok := strings.Cut(part, "=")
		f := find(fields, name)
		switch {
		case !ok:
			return fmt.Errorf("part %q: want name=value", part)
		case f == nil:
			return fmt.Errorf("unknown part %q; %s has %s", name, of, names(fields))
		case seen[name]:
			return fmt.Errorf("%q stands twice in the line", name)
		}
		seen[name] = true
		if err := f.read(text); err != nil {
			return err
		}
	}
	return nil
}

// printParts are the parts that are there.
func printParts(fields []field) string {
	var parts []string
	for _, f := range fields {
		if text, there := f.print(); there {
			parts = append(parts, f.name+"="+text)
		}
	}
	return strings.Join(parts, " ")
}

// find is the field of that name, or nil.
func find(fields []field, name string) *field {
	for i := range fields {
		if fields[i].name == name {
			return &fields[i]
		}
	}
	return nil
}

func names(fields []field) string {
	all := make([]string, len(fields))
	for i := range fields {
		all[i] = fields[i].name
	}
	return strings.Join(all, ", ")
}
