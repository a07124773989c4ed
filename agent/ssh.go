package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"mpiop/agent/internal/arguments"
	"mpiop/agent/internal/client"
	"mpiop/agent/internal/hosts"
	"mpiop/agent/internal/key"
	"mpiop/agent/internal/process"
	"mpiop/agent/internal/wire"
)

// addJobFlags adds the flags that say of which job this is, and where its key is.
func addJobFlags(flags *flag.FlagSet, called *client.Client) (path *string) {
	flags.StringVar(&called.Job.Name, "job", "", "the `name` of the job")
	flags.StringVar(&called.Job.Namespace, "namespace", "", "its `namespace`")
	flags.StringVar(&called.Addresses.Path, "addresses", "", "the `file` in which the operator tells addresses; none on a worker")
	flags.IntVar(&called.Port, "port", wire.Port, "the `port` of the servers")
	return flags.String("key", "", "the `file` with the job's private key")
}

var errNoProcess = errors.New("cannot read /proc")

func runClient(words []string) int {
	called := client.Client{Say: sayInLog, Times: client.DefaultTimes(), Output: os.Stdout, Error: os.Stderr}
	flags := flag.NewFlagSet("ssh", flag.ContinueOnError)
	path := addJobFlags(flags, &called)
	message := flags.String("message", "", "the termination message, a `file` that is marked if it is empty")
	mark := flags.String("mark", "", "the `line` for it")
	if err := addSilence(flags, &called.Times.Interval); err != nil {
		say("%v", err)
		return wire.Lost
	}
	if flags.Parse(words) != nil {
		return misused
	}
	called.Arguments = arguments.Parse(flags.Args())
	if called.Arguments.Host == "" || called.Arguments.Command == "" {
		say("usage: ssh [options] host command; a login without a command is not served")
		return wire.Lost
	}
	if kind, _ := called.Job.Classify(called.Arguments.Host); kind == hosts.Launcher && called.Addresses.Path != "" {
		err := syscall.Exec("/bin/sh", []string{"sh", "-c", called.Arguments.Command}, os.Environ())
		say("cannot run a command in this image: %v; mpirun's command lines need a shell", err)
		return wire.Lost
	}
	markMessage(*message, *mark)
	if !called.Arguments.NoInput {
		called.Input = os.Stdin
	}
	var err error
	if called.Key, err = key.Read(*path); err != nil {
		say("%v", err)
		endParents()
		return wire.Lost
	}
	return call(&called)
}

// call runs the client. When its host is lost, it ends the programs that called it: not all of them notice.
func call(called *client.Client) int {
	signals := make(chan os.Signal, 8)
	for _, passed := range []os.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2} {
		if !signal.Ignored(passed) {
			signal.Notify(signals, passed)
		}
	}
	called.Signals = signals
	parents := client.Parents()
	isSaid := false
	// Only into the log: our streams may be closed or full, and mpirun has to end. Its container may end with it, so this comes first.
	abort := func(err error) {
		isSaid = isSaid || writeLog("%v", err)
		client.Abort(parents)
	}
	if called.Addresses.Path != "" && client.HasPrterun(parents) { // on a worker, daemons start others, and mpirun is elsewhere
		called.Lost, called.Hold = abort, hold
	}
	code, err := called.Run()
	if lost := new(client.LostError); errors.As(err, &lost) && lost.Ended && client.HasPrterun(parents) {
		abort(err)
	}
	if err != nil {
		if !isSaid {
			sayEverywhere("%v", err)
		}
		endParents()
	}
	return code
}

// endParents starts a process of its own for it, since this one is to end now: some programs do notice.
func endParents() {
	words := []string{"mpiop-agent", endWord}
	for _, parent := range client.Parents() {
		words = append(words, parent.String())
	}
	self, err := os.Executable()
	if err != nil || len(words) == 2 {
		return
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer null.Close()
	// What it says is lost, but mpirun must not wait for the end of our streams.
	_, err = os.StartProcess(self, words, &os.ProcAttr{Env: os.Environ(), Files: []*os.File{null, null, null}, Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		say("cannot end mpirun: %v", err)
	}
}

func runEnd(words []string) int {
	client.End(parseAll(words), client.TimeToNotice, client.TimeToEnd)
	return 0
}

func parseAll(words []string) []process.Process {
	var parsed []process.Process
	for _, word := range words {
		if each, ok := process.Parse(word); ok {
			parsed = append(parsed, each)
		}
	}
	return parsed
}

// hold starts a process that has the descriptors open until our parent has taken our exit code, or has ended.
func hold(descriptors []uintptr) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	ours, ok := process.Read(os.Getpid())
	parent, found := process.Read(os.Getppid())
	if !ok || !found {
		return errNoProcess
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	// Not by os.StartProcess, which makes descriptors block: that would be ours too.
	_, err = syscall.ForkExec(self, []string{"mpiop-agent", holdWord, ours.String(), parent.String()}, &syscall.ProcAttr{
		Env: os.Environ(), Files: append([]uintptr{null.Fd(), null.Fd(), null.Fd()}, descriptors...), Sys: &syscall.SysProcAttr{Setsid: true},
	})
	return err
}

// runHold returns when the parent, which is the second process, knows how the first one has ended.
func runHold(words []string) int {
	parsed := parseAll(words)
	if len(parsed) != 2 {
		return misused
	}
	client.WaitUntilTaken(parsed[0], parsed[1])
	return 0
}

// podLog returns the standard error of our container's first process.
func podLog() string { return "/proc/" + strconv.Itoa(process.First()) + "/fd/2" }

// openLog returns the log of the Pod, and nil if a file of the user's takes its place: opened again, that has a position of its own, so
// our lines would overwrite the program's.
func openLog(path string) *os.File {
	about, err := os.Stat(path)
	if err != nil || about.Mode()&(os.ModeNamedPipe|os.ModeCharDevice) == 0 {
		return nil
	}
	// A pipe that nobody reads must not stop us, neither when we open it nor when we write.
	log, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	_ = log.SetWriteDeadline(time.Now().Add(time.Second))
	return log
}

// sayInLog writes into the Pod's log: some programs, that of Intel MPI for one, show nothing of what their ssh says.
func sayInLog(format string, values ...any) {
	if !writeLog(format, values...) {
		say(format, values...)
	}
}

// writeLog returns whether it could write into the Pod's log.
func writeLog(format string, values ...any) bool {
	log := openLog(podLog())
	if log == nil {
		return false
	}
	defer log.Close()
	_, err := fmt.Fprintf(log, line(format), values...)
	return err == nil
}

// sayEverywhere writes to our standard error, and into the Pod's log if that is another.
func sayEverywhere(format string, values ...any) {
	say(format, values...)
	log := openLog(podLog())
	if log == nil {
		return
	}
	defer log.Close()
	if !isSame(os.Stderr, log) {
		fmt.Fprintf(log, line(format), values...)
	}
}

func isSame(one, other *os.File) bool {
	first, failed := one.Stat()
	second, err := other.Stat()
	return failed == nil && err == nil && os.SameFile(first, second)
}

// markMessage does not append: several may find the file empty at the same time, and then all write the same to the same place.
func markMessage(path, mark string) {
	if path == "" {
		return
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return
	}
	defer file.Close()
	if about, err := file.Stat(); err == nil && about.Size() == 0 {
		_, _ = file.WriteAt([]byte(mark+"\n"), 0)
	}
}
