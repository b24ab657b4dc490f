package cli

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/alecthomas/kong"
)

type configCmd struct {
	Show  configShowCmd  `cmd:"" help:"Print the settings in force, and where each comes from."`
	Check configCheckCmd `cmd:"" help:"Check the configuration file."`
}

type configShowCmd struct{}

func (configShowCmd) Help() string {
	return `The settings are those that may stand in the configuration file, a YAML map of flag names:

    listen: [/ip4/0.0.0.0/tcp/4747, /ip4/0.0.0.0/udp/4747/quic-v1]
    log-format: json

Examples:
    syncd config show
    syncd --config /etc/syncd.yaml config show -o json`
}

// settingValue is a setting in force.
type settingValue struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Origin string `json:"origin"`
}

// Run prints the settings.
func (c configShowCmd) Run(a *app) error {
	var values []settingValue
	for _, s := range settingsOf(a.parsed.Model) {
		v := settingValue{Key: s.flag.Name}
		text, inFile, err := a.file.Get(s.flag.Name)
		switch {
		case err != nil:
			return err
		case given(a.parsed, s.flag):
			v.Value, v.Origin = setTo(s.flag), "flag"
		case envName(s.flag) != "":
			v.Value, v.Origin = os.Getenv(envName(s.flag)), "environment "+envName(s.flag)
		case inFile:
			v.Value, v.Origin = text, "file "+a.file.Path()
		default:
			v.Value, v.Origin = s.flag.Default, "default"
		}
		if v.Value == "" {
			if v.Value, err = a.derived(s.flag); err != nil {
				return err
			}
		}
		values = append(values, v)
	}
	return a.answer(nil, values, func() {
		t := a.table("setting", "value", "origin")
		for _, v := range values {
			t.row(v.Key, v.Value, v.Origin)
		}
		t.print()
	})
}

// setTo is the value that the command line gives, as it would stand in the
// environment.
func setTo(f *kong.Flag) string {
	if list, ok := f.Target.Interface().([]string); ok {
		return strings.Join(list, ",")
	}
	return fmt.Sprint(f.Target.Interface())
}

// derived is the value in force of a setting that nothing sets.
func (a *app) derived(f *kong.Flag) (string, error) {
	switch {
	case f.IsBool():
		return "false", nil
	case f.Name == "api":
		addrs, err := a.apiAddrs()
		return strings.Join(written(addrs), ","), err
	case f.Name == "token-file":
		return a.tokenFile(), nil
	}
	return "", nil
}

type configCheckCmd struct{}

func (configCheckCmd) Help() string {
	return `An unknown key, or a value that its flag or the daemon would not take, is exit code 2.

Example:
    syncd --config /etc/syncd.yaml config check`
}

// Run only reports: every command checks the file before it runs.
func (c configCheckCmd) Run(a *app) error {
	keys := a.file.Keys()
	return a.answer(nil, map[string]any{"file": a.file.Path(), "keys": append([]string{}, keys...)}, func() {
		a.printf("%s: ok, sets %s\n", a.file.Path(), cmp.Or(strings.Join(keys, ", "), "nothing"))
	})
}
