// Package arguments reads the command line of ssh(1) as mpirun and its daemons write it.
package arguments

import (
	"strconv"
	"strings"
)

// What ssh(1) knows; those with a colon take a value.
const options = "46AaCfGgKkMNnqsTtVvXxYyB:b:c:D:E:e:F:I:i:J:L:l:m:O:o:P:p:Q:R:S:W:w:"

// Arguments are what counts of a command line; options that are not listed here are skipped.
type Arguments struct {
	Host string
	// User is "" if none is named.
	User string
	// Port is 0 if none is named.
	Port int
	// Command is one line for a shell, as ssh makes it of all words after the host.
	Command string
	// NoInput is -n: standard input is not read.
	NoInput bool
}

// Parse never fails: an unknown option is one without a value, as for getopts(1), and a host that is missing is "".
func Parse(words []string) Arguments {
	var parsed Arguments
	for len(words) > 0 {
		word := words[0]
		if len(word) < 2 || word[0] != '-' {
			break
		}
		words = words[1:]
		if word == "--" {
			break
		}
		words = parsed.read(word[1:], words)
	}
	if len(words) == 0 {
		return parsed
	}
	parsed.setHost(words[0])
	parsed.Command = strings.Join(words[1:], " ")
	return parsed
}

// read takes one word of options and, if the last of them wants a value that is not in the word, the next word.
func (a *Arguments) read(letters string, rest []string) []string {
	for at := 0; at < len(letters); at++ {
		letter := letters[at]
		if !takesValue(letter) {
			a.NoInput = a.NoInput || letter == 'n'
			continue
		}
		value := letters[at+1:]
		if value == "" && len(rest) > 0 {
			value, rest = rest[0], rest[1:]
		}
		a.set(letter, value)
		return rest
	}
	return rest
}

func takesValue(letter byte) bool {
	found := strings.IndexByte(options, letter)
	return found >= 0 && letter != ':' && strings.HasPrefix(options[found+1:], ":")
}

func (a *Arguments) set(letter byte, value string) {
	switch letter {
	case 'l':
		a.User = value
	case 'p':
		if port, err := strconv.ParseUint(value, 10, 16); err == nil {
			a.Port = int(port)
		}
	}
}

func (a *Arguments) setHost(word string) {
	if at := strings.LastIndexByte(word, '@'); at >= 0 {
		if a.User == "" {
			a.User = word[:at]
		}
		word = word[at+1:]
	}
	a.Host = word
}
