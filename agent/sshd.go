package main

import (
	"flag"
	"net"
	"os"
	"os/signal"
	"runtime/debug"
	"strconv"
	"syscall"

	"mpiop/agent/internal/cgroup"
	"mpiop/agent/internal/children"
	"mpiop/agent/internal/key"
	"mpiop/agent/internal/server"
	"mpiop/agent/internal/session"
	"mpiop/agent/internal/wire"
)

func runServer(words []string) int {
	flags := flag.NewFlagSet("sshd", flag.ContinueOnError)
	port := flags.Int("port", wire.Port, "the `port` to listen on")
	path := flags.String("key", "", "the `file` with the job's private key")
	node := flags.String("node", os.Getenv(nodeVariable), "the `name` of the node, to be told to clients; default $"+nodeVariable)
	checkpoint := flags.String("checkpoint-signal", "", "the `signal` by which ranks are asked to save their work when the Pod ends")
	grace := flags.Duration("checkpoint-grace", 0, "how `long` they may run on then")
	interval := wire.Interval
	if err := addSilence(flags, &interval); err != nil {
		return done(err)
	}
	if flags.Parse(words) != nil {
		return misused
	}
	job, err := key.Read(*path)
	if err != nil {
		return done(err)
	}
	memory := cgroup.MemoryLimit(os.DirFS("/"))
	if memory > 0 {
		debug.SetMemoryLimit(max(leastMemory, memory/ofMemory))
	}
	self, err := os.Executable()
	if err != nil {
		say("cannot find the running program: %v", err)
		return failed
	}
	listener, err := net.Listen("tcp", ":"+strconv.Itoa(*port))
	if err != nil {
		say("%v; with hostNetwork, each worker of a node needs a port of its own", err)
		return failed
	}
	serving := server.New(job, children.New(), server.LimitsFor(memory, server.Descriptors()))
	serving.Interval = interval
	serving.Program, serving.Words = self, []string{"mpiop-agent", session.Word}
	serving.Node, serving.Say, serving.CheckpointSignal = *node, say, wire.SignalOf(*checkpoint)
	stop := make(chan os.Signal, 1)
	signal.Notify(stop, syscall.SIGTERM, syscall.SIGINT)
	ended := make(chan error, 1)
	go func() { ended <- serving.Serve(listener) }()
	say("serving on port %d", *port)
	arrived := <-stop
	// It listens until the ranks have saved their work: the launcher's preStop hook may ask later, and would not wait for them.
	if serving.Checkpoint() {
		say("ranks got %s; they may run on for %v", *checkpoint, *grace)
		serving.WaitForCommands(*grace)
	}
	_ = listener.Close()
	<-ended
	serving.TerminateAll()
	number, _ := arrived.(syscall.Signal)
	return bySignal + int(number)
}
