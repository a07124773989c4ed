package server_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"mpiop/agent/internal/wire"
)

// A rank that saves its work and ends, and one that does not know the signal, which would end it.
func TestRanksThatCatchTheCheckpointSignalGetItOnce(t *testing.T) {
	place := serve(t, wire.Interval)
	place.serving.CheckpointSignal = syscall.SIGUSR1
	saved := filepath.Join(t.TempDir(), "saved")
	rank := `trap "echo saved >>` + saved + `" USR1; echo ready >` + saved + `; until [ -e ` + saved + `.end ]; do sleep 0.05; done; exit 3`
	result := make(chan int, 1)
	go func() {
		code, _ := place.client("sleep 4719.25 & " + rank).Run()
		result <- code
	}()
	eventually(t, "it runs", func() bool { _, err := os.Stat(saved); return err == nil })
	for range 2 { // the launcher asks, and so does the end of the worker's Pod
		if asked, err := place.client("").Checkpoint(t.Context()); err != nil || !asked {
			t.Fatalf("got %v, %v", asked, err)
		}
	}
	eventually(t, "it is saved", func() bool { text, _ := os.ReadFile(saved); return strings.Contains(string(text), "saved") })
	if len(running("4719.25")) == 0 {
		t.Error("what does not catch the signal was ended")
	}
	started := time.Now()
	place.serving.WaitForCommands(100 * time.Millisecond)
	if waited := time.Since(started); waited < 100*time.Millisecond || waited > 5*time.Second {
		t.Errorf("waited for %v", waited)
	}
	late := place.client("true")
	late.Times.Connect = 10 * time.Millisecond
	if _, err := late.Run(); err == nil || !strings.Contains(err.Error(), "this Pod ends") {
		t.Errorf("a new command while the Pod ends: got %v", err)
	}
	if asked, err := place.client("").Checkpoint(t.Context()); err != nil || !asked {
		t.Errorf("while the Pod ends: got %v, %v", asked, err)
	}
	check(t, os.WriteFile(saved+".end", nil, 0o600))
	place.serving.WaitForCommands(time.Hour)
	if code := <-result; code != 3 {
		t.Errorf("got %d", code)
	}
	if text, err := os.ReadFile(saved); err != nil || string(text) != "ready\nsaved\n" {
		t.Errorf("got %q, %v", text, err)
	}
}

func TestWithoutACheckpointSignalNoneIsSent(t *testing.T) {
	place := serve(t, wire.Interval)
	if asked, err := place.client("").Checkpoint(t.Context()); err != nil || asked {
		t.Errorf("got %v, %v", asked, err)
	}
	check(t, place.listener.Close())
	if asked, err := place.client("").Checkpoint(t.Context()); err == nil || asked {
		t.Errorf("a server that is gone: got %v, %v", asked, err)
	}
}
