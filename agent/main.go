// mpiop-agent takes the place of ssh and sshd in the Pods of an MPIJob, so that an image needs neither.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"mpiop/agent/internal/install"
	"mpiop/agent/internal/session"
	"mpiop/agent/internal/wire"
)

const (
	endWord      = "end"
	holdWord     = "hold"
	failed       = 1
	misused      = 2
	bySignal     = 128
	nodeVariable = "MPIOP_NODE"

	silenceVariable = "MPIOP_SILENCE"
	leastSilence    = 3 * time.Second

	// ofMemory is the share of the container's memory at which garbage is collected without delay. Most is the ranks'.
	ofMemory    = 4
	leastMemory = 32 << 20

	usage = `mpiop-agent takes the place of ssh and sshd in the Pods of an MPIJob.

  mpiop-agent install DIR          copy this program into DIR
  mpiop-agent sshd [flags]         serve the job's members
  mpiop-agent ssh [flags] -- ...   what mpirun calls; after -- the command line of ssh(1)
  mpiop-agent checkpoint [flags]   ask all ranks to save their work, and wait for mpirun
`
)

func main() { os.Exit(run(os.Args[1:])) }

func run(words []string) int {
	if len(words) == 0 {
		fmt.Fprint(os.Stderr, usage)
		return misused
	}
	switch words[0] {
	case "install":
		return runInstall(words[1:])
	case "ssh":
		return runClient(words[1:])
	case "sshd":
		return runServer(words[1:])
	case "checkpoint":
		return runCheckpoint(words[1:])
	case session.Word:
		return runSession(words[1:])
	case endWord:
		return runEnd(words[1:])
	case holdWord:
		return runHold(words[1:])
	}
	fmt.Fprint(os.Stderr, usage)
	return misused
}

// done returns the exit code of what ended with err, and says it.
func done(err error) int {
	if err == nil {
		return 0
	}
	say("%v", err)
	return failed
}

func say(format string, values ...any) {
	fmt.Fprintf(os.Stderr, line(format), values...)
}

func line(format string) string { return "mpiop-agent: " + format + "\n" }

func runInstall(words []string) int {
	if len(words) != 1 {
		fmt.Fprint(os.Stderr, usage)
		return misused
	}
	return done(install.Into(words[0]))
}

// runSession is called by the server only.
func runSession(words []string) int {
	if len(words) != 1 {
		return misused
	}
	return done(session.Main(words[0]))
}

// addSilence adds the flag that says how long nothing may arrive from the other side before it is lost. Its default may be in the
// environment, because mpirun calls ssh with the operator's flags.
func addSilence(flags *flag.FlagSet, interval *time.Duration) error {
	set := func(text string) error {
		silence, err := time.ParseDuration(text)
		if err != nil || silence < leastSilence {
			return fmt.Errorf("%q is not a duration of at least %v, such as 15s", text, leastSilence)
		}
		*interval = silence / wire.Silent
		return nil
	}
	flags.Func("silence", "after how `long` without a byte from the other side it is lost; default $"+silenceVariable+", else 15s", set)
	if text := os.Getenv(silenceVariable); text != "" {
		if err := set(text); err != nil {
			return fmt.Errorf("$%s: %w", silenceVariable, err)
		}
	}
	return nil
}
