// Package hosts finds the address of a host of the job.
package hosts

import (
	"os"
	"strconv"
	"strings"
)

// Job is where the names of a job's hosts come from.
type Job struct {
	Name      string
	Namespace string
}

// Kind says what a name stands for.
type Kind int

const (
	// Other is a name or an address that is not one of the job's.
	Other Kind = iota
	// Launcher is the launcher of the job.
	Launcher
	// Worker is a worker of the job.
	Worker
)

// Classify returns what host is, and the index of a worker. It takes the forms in which libraries write a host: the Pod's name alone,
// and with any part of `.<job>.<namespace>.svc.<domain>` after it.
func (j Job) Classify(host string) (Kind, string) {
	name, domain, _ := strings.Cut(host, ".")
	if !j.isDomain(domain) {
		return Other, ""
	}
	if name == j.Name+"-launcher" {
		return Launcher, ""
	}
	if index, found := strings.CutPrefix(name, j.Name+"-worker-"); found && isIndex(index) {
		return Worker, index
	}
	return Other, ""
}

func (j Job) isDomain(domain string) bool {
	service := j.Name + "." + j.Namespace + ".svc"
	switch domain {
	case "", j.Name, j.Name + "." + j.Namespace, service:
		return true
	}
	return strings.HasPrefix(domain, service+".")
}

func isIndex(text string) bool {
	if text == "" || len(text) > 1 && text[0] == '0' {
		return false
	}
	return strings.Trim(text, "0123456789") == ""
}

// Ended stands in the place of an address for a worker that has ended and is not made again.
const Ended = "ended"

// Addresses is the file in which the operator tells the addresses of the workers: a line `workers <count>`, and a line
// `<index> <address>` for each that can be reached.
type Addresses struct{ Path string }

// Find returns the address of the worker with that index, "" while there is none, and whether the job has so many workers that their
// names have to be asked for instead.
func (a Addresses) Find(index string) (address string, byName bool) {
	text, err := os.ReadFile(a.Path)
	if err != nil {
		return "", false
	}
	return find(string(text), index)
}

// HaveNo returns whether the job has no worker with that index any more, but fewer.
func (a Addresses) HaveNo(index string) bool {
	told, _ := a.Find("workers")
	count, err := strconv.Atoi(told)
	number, failed := strconv.Atoi(index)
	return err == nil && failed == nil && number >= count
}

// AreEmpty returns whether no worker has an address, as before all of them are Ready.
func (a Addresses) AreEmpty() bool {
	text, err := os.ReadFile(a.Path)
	return err != nil || len(text) == 0
}

func find(text, index string) (address string, byName bool) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if line == "by-name" {
			byName = true
		}
		if key, value, found := strings.Cut(line, " "); found && key == index {
			address = value
		}
	}
	return address, byName
}

// Listed returns the hosts of a hostfile, as any MPI library writes it: the first word of a line, without what follows a colon.
func Listed(text string) []string {
	var found []string
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		host, _, _ := strings.Cut(words[0], ":")
		found = append(found, host)
	}
	return found
}
