package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (completionCmd) Help() string {
	return `Examples:
    source <(syncd completion bash)
    syncd completion zsh > "${fpath[1]}/_syncd"
    syncd completion fish > ~/.config/fish/completions/syncd.fish`
}

// The scripts are written here, not by kongplete or kong-completion: those run
// the program at each key press and give zsh and fish no help texts.

// command is what a completion script knows of a command.
type command struct {
	path  string // "peer add"; "" for syncd itself
	help  string
	subs  []command
	flags []*kong.Flag // its own, and those of the commands above it
	words []string     // what its argument may be, if that is known
}

func commandOf(n *kong.Node, path string, above []*kong.Flag) command {
	c := command{path: path, help: n.Help, flags: append(append([]*kong.Flag{}, above...), n.Flags...)}
	for _, arg := range n.Positional {
		c.words = append(c.words, known(arg)...)
	}
	for _, child := range n.Children {
		if child.Type == kong.CommandNode && !child.Hidden {
			c.subs = append(c.subs, commandOf(child, strings.TrimSpace(path+" "+child.Name), c.flags))
		}
	}
	if n.DefaultCmd != nil { // its name may be left out
		c.flags = append(c.flags, n.DefaultCmd.Flags...)
	}
	return c
}

// all lists the command and those below it.
func (c command) all() []command {
	list := []command{c}
	for _, s := range c.subs {
		list = append(list, s.all()...)
	}
	return list
}

// name is the last word of the path.
func (c command) name() string { return c.path[strings.LastIndex(c.path, " ")+1:] }

// builtIn is what the tag `complete` says of what may be a built-in scenario; of others it lists words.
const builtIn = "scenarios"

// enum lists the values that a flag takes, if they are few, or the words that it takes beside numbers.
func enum(f *kong.Flag) []string {
	words := f.Enum
	if tag := f.Tag.Get("complete"); words == "" && tag != builtIn {
		words = tag
	}
	if words == "" {
		return nil
	}
	return strings.Split(words, ",")
}

// known lists words that a flag or argument takes beside files.
func known(v *kong.Value) []string {
	if v.Tag.Get("complete") == builtIn {
		return scenarioNames()
	}
	return nil
}

// Run prints the script, made from the command tree itself.
func (c completionCmd) Run(a *app) error {
	tree := commandOf(a.parsed.Model.Node, "", nil)
	script := map[string]func(command) string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}[c.Shell]
	return a.printf("%s", script(tree))
}

// bashScript looks up the words that may follow in a table by the commands
// typed so far.
func bashScript(tree command) string {
	var b strings.Builder
	b.WriteString("# bash completion for syncd\n_syncd() {\n")
	b.WriteString("    local cur=\"${COMP_WORDS[COMP_CWORD]}\" prev=\"${COMP_WORDS[COMP_CWORD-1]}\" path=\"\" word i\n")
	b.WriteString("    for ((i = 1; i < COMP_CWORD; i++)); do\n        word=\"${COMP_WORDS[i]}\"\n        case \"$path $word\" in\n")
	for _, c := range tree.all() {
		if c.path != "" {
			fmt.Fprintf(&b, "            %q) path=%q ;;\n", " "+c.path, " "+c.path)
		}
	}
	b.WriteString("        esac\n    done\n    case \"$path $prev\" in\n")
	for _, c := range tree.all() {
		for _, f := range c.flags {
			if values := enum(f); values != nil {
				fmt.Fprintf(&b, "        %q) COMPREPLY=($(compgen -W %q -- \"$cur\")); return ;;\n",
					strings.TrimRight(" "+c.path, " ")+" --"+f.Name, strings.Join(values, " "))
			}
			if words := known(f.Value); words != nil {
				fmt.Fprintf(&b, "        %q) COMPREPLY=($(compgen -f -W %q -- \"$cur\")); return ;;\n", " "+c.path+" --"+f.Name, strings.Join(words, " "))
			}
		}
	}
	b.WriteString("    esac\n    case \"$path\" in\n")
	for _, c := range tree.all() {
		words := slices.Clone(c.words)
		for _, s := range c.subs {
			words = append(words, s.name())
		}
		for _, f := range c.flags {
			words = append(words, "--"+f.Name)
		}
		fmt.Fprintf(&b, "        %q) COMPREPLY=($(compgen -W %q -- \"$cur\")) ;;\n", strings.TrimRight(" "+c.path, " "), strings.Join(words, " "))
	}
	b.WriteString("    esac\n}\ncomplete -o default -F _syncd syncd\n")
	return b.String()
}

// zshScript walks the same table, with the help texts.
func zshScript(tree command) string {
	var b strings.Builder
	b.WriteString("#compdef syncd\n_syncd() {\n    local path='' word i\n    local -a subs flags\n")
	b.WriteString("    for ((i = 2; i < CURRENT; i++)); do\n        word=\"${words[i]}\"\n        case \"$path $word\" in\n")
	for _, c := range tree.all() {
		if c.path != "" {
			fmt.Fprintf(&b, "            %s) path=%s ;;\n", quote(" "+c.path), quote(" "+c.path))
		}
	}
	b.WriteString("        esac\n    done\n    case \"$path\" in\n")
	for _, c := range tree.all() {
		fmt.Fprintf(&b, "        %s)\n", quote(strings.TrimRight(" "+c.path, " ")))
		b.WriteString("            subs=(")
		for _, s := range c.subs {
			b.WriteString(" " + quote(s.name()+":"+colons(s.help)))
		}
		for _, w := range c.words {
			b.WriteString(" " + quote(w))
		}
		b.WriteString(" )\n            flags=(")
		for _, f := range c.flags {
			b.WriteString(" " + quote("--"+f.Name+":"+colons(f.Help)))
		}
		b.WriteString(" ) ;;\n")
	}
	b.WriteString("    esac\n    if [[ \"${words[CURRENT]}\" == -* ]]; then\n        _describe flag flags\n")
	b.WriteString("    elif (( ${#subs} )); then\n        _describe command subs\n    else\n        _files\n    fi\n}\n")
	b.WriteString("if [ \"$funcstack[1]\" = \"_syncd\" ]; then _syncd \"$@\"; else compdef _syncd syncd; fi\n")
	return b.String()
}

// fishScript states each command and flag with the condition under which it
// is offered.
func fishScript(tree command) string {
	var b strings.Builder
	b.WriteString("# fish completion for syncd\ncomplete -c syncd -f\n")
	for _, c := range tree.all() {
		when := "__fish_use_subcommand"
		if c.path != "" {
			parts := strings.Fields(c.path)
			for i, p := range parts {
				parts[i] = "__fish_seen_subcommand_from " + p
			}
			when = strings.Join(parts, "; and ")
		}
		for _, s := range c.subs {
			fmt.Fprintf(&b, "complete -c syncd -n %s -a %s -d %s\n", quote(when), quote(s.name()), quote(s.help))
		}
		if len(c.words) > 0 {
			fmt.Fprintf(&b, "complete -c syncd -n %s -a %s\n", quote(when), quote(strings.Join(c.words, " ")))
		}
		own := c.flags
		if c.path != "" {
			own = own[len(tree.flags):]
		}
		for _, f := range own {
			line := "complete -c syncd -l " + f.Name
			if c.path != "" {
				line += " -n " + quote(when)
			}
			if values := enum(f); values != nil {
				line += " -x -a " + quote(strings.Join(values, " "))
			} else if !f.IsBool() {
				line += " -r -F"
			}
			if words := known(f.Value); words != nil {
				line += " -a " + quote(strings.Join(words, " "))
			}
			fmt.Fprintf(&b, "%s -d %s\n", line, quote(f.Help))
		}
	}
	return b.String()
}

// quote is a word for any of the shells.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// colons escapes what zsh takes for the end of a word.
func colons(s string) string { return strings.ReplaceAll(s, ":", `\:`) }
