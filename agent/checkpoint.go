package main

import (
	"context"
	"flag"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"mpiop/agent/internal/arguments"
	"mpiop/agent/internal/client"
	"mpiop/agent/internal/hosts"
	"mpiop/agent/internal/key"
	"mpiop/agent/internal/process"
	"mpiop/agent/internal/wire"
)

const (
	askTime     = 10 * time.Second
	atOnce      = 64
	betweenPoll = 100 * time.Millisecond
)

// runCheckpoint is called before the launcher's Pod gets its TERM: it asks all ranks to save their work, and waits for mpirun.
func runCheckpoint(words []string) int {
	asking := client.Client{Say: sayInLog, Times: client.DefaultTimes()}
	flags := flag.NewFlagSet("checkpoint", flag.ContinueOnError)
	path := addJobFlags(flags, &asking)
	file := flags.String("hosts", "", "the hostfile of the job, a `file`")
	name := flags.String("signal", "", "the `signal`, such as SIGUSR1")
	grace := flags.Duration("grace", 0, "how `long` mpirun may run on")
	if flags.Parse(words) != nil {
		return misused
	}
	number := wire.SignalOf(*name)
	text, err := os.ReadFile(*file)
	if err != nil || number == 0 {
		say("cannot ask ranks to save their work with signal %q: %v", *name, err)
		return failed
	}
	if asking.Key, err = key.Read(*path); err != nil {
		return done(err)
	}
	end := time.Now().Add(*grace)
	if asked := askAll(asking, hosts.Listed(string(text)), number); asked > 0 {
		sayInLog("ranks on %d hosts got %s, or may have got it; mpirun may run on for %v", asked, *name, *grace)
		waitForStarters(end)
	}
	return 0
}

// askAll returns on how many hosts there are ranks that save their work, or may be.
func askAll(asking client.Client, listed []string, number syscall.Signal) int64 {
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	var asked atomic.Int64
	var all sync.WaitGroup
	places := make(chan struct{}, atOnce)
	for _, host := range listed {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			if ask(ctx, asking, host, number) {
				asked.Add(1)
			}
		})
	}
	all.Wait()
	return asked.Load()
}

func ask(ctx context.Context, asking client.Client, host string, number syscall.Signal) bool {
	if kind, _ := asking.Job.Classify(host); kind == hosts.Launcher {
		ranks := process.ThatCatch(number, process.OfContainer())
		process.SignalAll(ranks, number)
		return len(ranks) > 0
	}
	asking.Arguments = arguments.Arguments{Host: host}
	isAsked, err := asking.Checkpoint(ctx)
	if err != nil {
		sayInLog("%v", err)
	}
	return isAsked || err != nil
}

func waitForStarters(end time.Time) {
	for time.Now().Before(end) && slices.ContainsFunc(process.OfContainer(), process.Process.IsStarter) {
		time.Sleep(betweenPoll)
	}
}
