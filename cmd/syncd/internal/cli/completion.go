package cli

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/syncd-io/syncd/cmd/syncd/internal/advice"
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
}

func commandOf(n *kong.Node, path string, above []*kong.Flag) command {
	c := command{path: path, help: n.Help, flags: append(append([]*kong.Flag{}, above...), n.Flags...)}
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

// enum lists the values that a flag takes, if they are few, or the words that it takes beside numbers.
func enum(f *kong.Flag) []string {
	words := f.Enum
	if tag := f.Tag.Get("complete"); words == "" {
		words = tag
	}
	if words == "" {
		return nil
	}
	return strings.Split(words, ",")
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
		}
	}
	b.WriteString("    esac\n    case \"$path\" in\n")
	for _, c := range tree.all() {
		var words []string
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
			fmt.Fprintf(&b, "            %s) path=%s ;;\n", advice.Quote(" "+c.path), advice.Quote(" "+c.path))
		}
	}
	b.WriteString("        esac\n    done\n    case \"$path\" in\n")
	for _, c := range tree.all() {
		fmt.Fprintf(&b, "        %s)\n", advice.Quote(strings.TrimRight(" "+c.path, " ")))
		b.WriteString("            subs=(")
		for _, s := range c.subs {
			b.WriteString(" " + advice.Quote(s.name()+":"+colons(s.help)))
		}
		b.WriteString(" )\n            flags=(")
		for _, f := range c.flags {
			b.WriteString(" " + advice.Quote("--"+f.Name+":"+colons(f.Help)))
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
			fmt.Fprintf(&b, "complete -c syncd -n %s -a %s -d %s\n", advice.Quote(when), advice.Quote(s.name()), advice.Quote(s.help))
		}
		own := c.flags
		if c.path != "" {
			own = own[len(tree.flags):]
		}
		for _, f := range own {
			line := "complete -c syncd -l " + f.Name
			if c.path != "" {
				line += " -n " + advice.Quote(when)
			}
			if values := enum(f); values != nil {
				line += " -x -a " + advice.Quote(strings.Join(values, " "))
			} else if !f.IsBool() {
				line += " -r -F"
			}
			fmt.Fprintf(&b, "%s -d %s\n", line, advice.Quote(f.Help))
		}
	}
	return b.String()
}

// colons escapes what zsh takes for the end of a word.
func colons(s string) string { return strings.ReplaceAll(s, ":", `\:`) }
