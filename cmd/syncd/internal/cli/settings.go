package cli

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/syncd-io/syncd/cmd/syncd/internal/advice"
	"github.com/syncd-io/syncd/cmd/syncd/internal/problem"
	"github.com/syncd-io/syncd/cmd/syncd/internal/settings"
)

// setting is a flag that may stand in the configuration file.
type setting struct {
	flag    *kong.Flag
	command string // "" for a global one
}

// settingsOf lists them in the order of the command tree, those of several commands
// once.
func settingsOf(model *kong.Application) []setting {
	var all []setting
	seen := make(map[string]bool)
	eachNode(model.Node, func(n *kong.Node) {
		for _, f := range n.Flags {
			if f.Tag.Has("setting") && !seen[f.Name] {
				seen[f.Name] = true
				all = append(all, setting{f, n.Path()})
			}
		}
	})
	return all
}

// loadFile reads the configuration file before kong gives flags that the
// command line does not set their values.
func (a *app) loadFile(k *kong.Context) error {
	if err := checkVariables(k.Model, os.Environ()); err != nil {
		return err
	}
	path, given := stringFlag(k, "config")
	if !given {
		if dir, _ := stringFlag(k, "data-dir"); dir != "" {
			path = filepath.Join(dir, settings.FileName)
		}
	}
	var known []string
	all := settingsOf(k.Model)
	for _, s := range all {
		if s.flag.Name != "data-dir" { // the file lies in it
			known = append(known, s.flag.Name)
		}
	}
	file, err := settings.Load(path, known, !given)
	if err != nil {
		return problem.Usage("%w", err)
	}
	a.file = file
	for _, s := range all {
		if err := checkSetting(file, s); err != nil {
			return err
		}
	}
	k.AddResolver(kong.ResolverFunc(func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		if !flag.Tag.Has("setting") || envName(flag) != "" {
			return nil, nil
		}
		text, ok, err := file.Get(flag.Name)
		if err != nil || !ok {
			return nil, err
		}
		return text, nil
	}))
	return nil
}

// checkSetting reports a value in the file that its flag would not take, also
// when the command at hand does not use it.
func checkSetting(file *settings.File, s setting) error {
	text, ok, err := file.Get(s.flag.Name)
	if err != nil || !ok {
		return err
	}
	target := reflect.New(s.flag.Target.Type()).Elem()
	scan := kong.Scan().PushTyped(text, kong.FlagValueToken)
	if err := s.flag.Mapper.Decode(&kong.DecodeContext{Value: s.flag.Value, Scan: scan}, target); err != nil {
		return problem.Usage("configuration %s: %s: %w", file.Path(), s.flag.Name, err)
	}
	if err := checkValue(s.flag.Name, target.Interface()); err != nil {
		return problem.Usage("configuration %s: %w", file.Path(), err)
	}
	if s.flag.Enum == "" || slices.Contains(strings.Split(s.flag.Enum, ","), text) {
		return nil
	}
	return problem.Usage("configuration %s: %s must be one of %s, not %q", file.Path(), s.flag.Name, s.flag.Enum, text)
}

// checkValue reports a value of a setting that has its type, but that the
// command would refuse.
func checkValue(name string, value any) error {
	switch v := value.(type) {
	case time.Duration:
		if v < 0 {
			return problem.Usage("--%s: %s is negative", name, v)
		}
	case int:
		if name == "watch-log" && v < 1 {
			return problem.Usage("--watch-log %d: want a number of changes that is greater than 0", v)
		}
	case interface{ check(flag string) error }:
		return v.check(name)
	case []string:
		switch name {
		case "api":
			return apiValid(v)
		case "listen", "announce":
			return portsValid(name, v)
		case "relay":
			return relaysValid(v)
		}
	}
	return nil
}

// checkSettings reports values, from wherever they come, that the command at
// hand would refuse.
func checkSettings(k *kong.Context) error {
	for _, s := range settingsOf(k.Model) {
		if s.command != "" && s.command != commandName(k) {
			continue
		}
		if err := checkValue(s.flag.Name, s.flag.Target.Interface()); err != nil {
			return err
		}
	}
	return nil
}

// refuseEmpty reports a flag or an optional argument that is given, and empty: often a
// variable of the shell that was to hold something. Left out it would mean all, now, or on
// no condition.
func refuseEmpty(k *kong.Context) error {
	for _, p := range k.Path {
		value, name := p.Positional, "the argument "
		if p.Flag != nil {
			value, name = p.Flag.Value, "--"
		}
		if value == nil || p.Resolved || p.Flag == nil && value.Required || value.Tag.Has("empty") {
			continue
		}
		text, isText := value.Target.Interface().(string)
		list, isList := value.Target.Interface().([]string)
		if isText && text == "" || isList && (len(list) == 0 || slices.Contains(list, "")) {
			return problem.Usage("%s%s is empty: give it a value, or leave it out", name, value.Name)
		}
	}
	return nil
}

// stringFlag is the value of a global flag before the file is read, and
// whether the command line or the environment sets it.
func stringFlag(k *kong.Context, name string) (string, bool) {
	for _, f := range k.Model.Flags {
		if f.Name != name {
			continue
		}
		if given(k, f) {
			text, _ := k.FlagValue(f).(string)
			return text, true
		}
		if env := envName(f); env != "" {
			return os.Getenv(env), true
		}
		return f.Default, false
	}
	return "", false
}

// given tells whether the command line sets the flag.
func given(k *kong.Context, f *kong.Flag) bool {
	for _, p := range k.Path {
		if p.Flag == f && !p.Resolved {
			return true
		}
	}
	return false
}

// variablePrefix begins the names of this program's environment variables.
const variablePrefix = "SYNCD_"

// variableOf is the environment variable of a flag, if it has one.
func variableOf(flag string) string {
	return variablePrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// nameVariables gives the settings their environment variables. Other flags have none: a
// variable outlives the command that it was meant for.
func nameVariables(k *kong.Kong) error {
	eachNode(k.Model.Node, func(n *kong.Node) {
		for _, f := range n.Flags {
			if f.Tag.Has("setting") {
				f.Envs = []string{variableOf(f.Name)}
				f.Tag.Envs = f.Envs
			}
		}
	})
	return nil
}

func eachNode(n *kong.Node, do func(*kong.Node)) {
	do(n)
	for _, child := range n.Children {
		eachNode(child, do)
	}
}

// ofKubernetes matches the variables that Kubernetes sets in each container for a service
// called syncd, or syncd-NAME.
var ofKubernetes = regexp.MustCompile(`^SYNCD_(\w+_)?(SERVICE_HOST=|SERVICE_PORT|PORT=\w+://|PORT_\d+_)`)

// checkVariables refuses a variable that sets nothing: it is misspelt, or its author takes
// it for in force.
func checkVariables(model *kong.Application, environ []string) error {
	var known []string
	flags := make(map[string]bool)
	eachNode(model.Node, func(n *kong.Node) {
		for _, f := range n.Flags {
			flags[f.Name] = true
			known = append(known, f.Envs...)
		}
	})
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		if !strings.HasPrefix(name, variablePrefix) || slices.Contains(known, name) || ofKubernetes.MatchString(entry) {
			continue
		}
		flag := strings.ToLower(strings.ReplaceAll(strings.TrimPrefix(name, variablePrefix), "_", "-"))
		if flags[flag] {
			return problem.Usage("the environment variable %s is not one of syncd's: unset it, and give --%s to the command that it is for", name, flag)
		}
		nearest := slices.MinFunc(known, func(a, b string) int { return advice.Edits(name, a) - advice.Edits(name, b) })
		return problem.Usage("the environment variable %s is not one of syncd's; the nearest is %s; unset it, or correct its name", name, nearest)
	}
	return nil
}

// envName is the name of the environment variable that sets the flag, if one
// does.
func envName(f *kong.Flag) string {
	for _, name := range f.Envs {
		if _, ok := os.LookupEnv(name); ok {
			return name
		}
	}
	return ""
}
