// Package wire is what client and server agree on: algorithms, requests, exit codes, and when the other side is lost.
package wire

import (
	"strings"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
)

const (
	// Version is what each side calls itself before the handshake; it tells nothing about the job.
	Version = "SSH-2.0-mpiop"
	// KeepAlive is OpenSSH's name of the request that only asks for an answer, which any server and client gives.
	KeepAlive = "keepalive@openssh.com"
	// Node is the global request by which a server tells the name of its node.
	Node = "node@mpiop.kubeflow.org"
	// Checkpoint is the global request to send the checkpoint signal to the ranks of a server.
	Checkpoint = "checkpoint@mpiop.kubeflow.org"
	// Port is where a server listens if nothing else is said.
	Port = 2222
	// HandshakeTime is what a client has from its connection to its login.
	HandshakeTime = 10 * time.Second
	// Interval is the time between two keep-alives.
	Interval = 5 * time.Second
	// Silent is the number of intervals without a byte after which the other side is lost.
	Silent = 3
)

// Config returns the algorithms that a client accepts: none with SHA-1, CBC, or a weak group.
func Config() ssh.Config {
	return ssh.Config{
		KeyExchanges: []string{ssh.KeyExchangeMLKEM768X25519, ssh.KeyExchangeCurve25519},
		Ciphers:      []string{ssh.CipherAES128GCM, ssh.CipherAES256GCM, ssh.CipherChaCha20Poly1305},
		MACs:         []string{ssh.HMACSHA256ETM, ssh.HMACSHA512ETM},
	}
}

// ServerConfig returns the algorithms that a server accepts: AES-GCM alone, because it does not encrypt the length of a packet (RFC 5647,
// 7.3), which a server has to know before a login.
func ServerConfig() ssh.Config {
	config := Config()
	config.Ciphers = []string{ssh.CipherAES128GCM, ssh.CipherAES256GCM}
	return config
}

// SignatureAlgorithms are those by which a member of the job proves itself, for each type of key that the operator makes.
func SignatureAlgorithms() []string {
	return []string{ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA521, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA256, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
}

// AlgorithmsOf returns those by which a key of that type signs.
func AlgorithmsOf(keyType string) []string {
	if keyType == ssh.KeyAlgoRSA {
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	return []string{keyType}
}

// The payloads of a session's requests (RFC 4254, 6.4 to 6.10).
type (
	// Exec asks for a command.
	Exec struct{ Command string }
	// Env sets a variable of the command.
	Env struct{ Name, Value string }
	// Signal sends one to the command.
	Signal struct{ Name string }
	// ExitStatus tells that the command ended by itself.
	ExitStatus struct{ Code uint32 }
	// ExitSignal tells that a signal ended it.
	ExitSignal struct {
		Name       string
		CoreDumped bool
		Message    string
		Language   string
	}
)

// Lost is the exit code of a client that could not reach its host, or lost it: as with OpenSSH.
const Lost = 255

var signals = map[string]syscall.Signal{
	"ABRT": syscall.SIGABRT, "ALRM": syscall.SIGALRM, "FPE": syscall.SIGFPE, "HUP": syscall.SIGHUP, "ILL": syscall.SIGILL,
	"INT": syscall.SIGINT, "KILL": syscall.SIGKILL, "PIPE": syscall.SIGPIPE, "QUIT": syscall.SIGQUIT, "SEGV": syscall.SIGSEGV,
	"TERM": syscall.SIGTERM, "USR1": syscall.SIGUSR1, "USR2": syscall.SIGUSR2,
	// Not in the RFC, but they end programs too.
	"BUS": syscall.SIGBUS, "XCPU": syscall.SIGXCPU, "XFSZ": syscall.SIGXFSZ, "SYS": syscall.SIGSYS, "TRAP": syscall.SIGTRAP,
}

// SignalNumber returns the signal of that name, without its SIG, or 0.
func SignalNumber(name string) syscall.Signal { return signals[name] }

// SignalOf returns the signal of a name with SIG, such as SIGUSR1, or 0.
func SignalOf(name string) syscall.Signal { return SignalNumber(strings.TrimPrefix(name, "SIG")) }

// SignalName returns the name of the signal, or "" if it has none here.
func SignalName(signal syscall.Signal) string {
	for name, number := range signals {
		if number == signal {
			return name
		}
	}
	return ""
}

// ExitCode returns what a shell says of a command that the signal of that name ended.
func ExitCode(name string) int {
	if number := SignalNumber(name); number != 0 {
		return 128 + int(number)
	}
	return Lost
}
