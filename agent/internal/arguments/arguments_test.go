package arguments_test

import (
	"strings"
	"testing"

	"mpiop/agent/internal/arguments"
)

func TestCommandLinesOfEachLibrary(t *testing.T) {
	for name, row := range map[string]struct {
		words []string
		want  arguments.Arguments
	}{
		"Open MPI 4": {
			[]string{"-o", "ConnectionAttempts=10", "-x", "pi-worker-0.pi.default.svc", "orted", "-mca", "ess", `"env"`},
			arguments.Arguments{Host: "pi-worker-0.pi.default.svc", Command: `orted -mca ess "env"`},
		},
		"Open MPI 5": {
			[]string{"-F", "/etc/mpi-hosts/ssh_config", "-x", "pi-worker-1", "PRTE_PREFIX=/opt/mpi;", "export", "PRTE_PREFIX;prted"},
			arguments.Arguments{Host: "pi-worker-1", Command: "PRTE_PREFIX=/opt/mpi; export PRTE_PREFIX;prted"},
		},
		"Hydra": {
			[]string{"-x", "-o", "ConnectionAttempts=10", "10.0.0.7", `"/usr/bin/hydra_pmi_proxy"`, "--control-port", "pi-launcher:1"},
			arguments.Arguments{Host: "10.0.0.7", Command: `"/usr/bin/hydra_pmi_proxy" --control-port pi-launcher:1`},
		},
		"Intel MPI":            {[]string{"-q", "-x", "host", "true"}, arguments.Arguments{Host: "host", Command: "true"}},
		"user and port":        {[]string{"-p", "2200", "me@host", "id"}, arguments.Arguments{Host: "host", User: "me", Port: 2200, Command: "id"}},
		"values in the word":   {[]string{"-xp2200", "-lme", "you@host", "id"}, arguments.Arguments{Host: "host", User: "me", Port: 2200, Command: "id"}},
		"letters together":     {[]string{"-nTx", "host", "id"}, arguments.Arguments{Host: "host", NoInput: true, Command: "id"}},
		"end of the options":   {[]string{"-x", "--", "host", "-n"}, arguments.Arguments{Host: "host", Command: "-n"}},
		"unknown letters":      {[]string{"-z:Z", "host", "id"}, arguments.Arguments{Host: "host", Command: "id"}},
		"a port that is none":  {[]string{"-p", "99999", "host", "id"}, arguments.Arguments{Host: "host", Command: "id"}},
		"a user with an at":    {[]string{"me@home@host", "id"}, arguments.Arguments{Host: "host", User: "me@home", Command: "id"}},
		"no host":              {[]string{"-x"}, arguments.Arguments{}},
		"a value that is none": {[]string{"-p"}, arguments.Arguments{}},
		"nothing":              {nil, arguments.Arguments{}},
	} {
		if got := arguments.Parse(row.words); got != row.want {
			t.Errorf("%s: %q: got %+v, want %+v", name, row.words, got, row.want)
		}
	}
}

// What ssh(1) would do: after the host everything is the command's.
func FuzzParse(f *testing.F) {
	f.Add("-x\n-o\nA=1\nhost\nid", "host", "id")
	f.Add("-p22\n--", "me@host", "")
	f.Fuzz(func(t *testing.T, before, host, command string) {
		got := arguments.Parse(append(strings.Split(before, "\n"), "--", "host", command))
		if got.Port < 0 || got.Port > 65535 {
			t.Errorf("port %d", got.Port)
		}
		if host == "" || strings.HasPrefix(host, "-") || strings.Contains(host, "@") {
			return
		}
		got = arguments.Parse([]string{"-x", host, command})
		if got.Host != host || got.Command != command {
			t.Errorf("%q %q: got %+v", host, command, got)
		}
	})
}
