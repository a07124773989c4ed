package session

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// descendants returns the ids of all processes below root, as /proc shows them now.
func descendants(root int) []int {
	parents := map[int]int{}
	entries, _ := os.ReadDir("/proc")
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		text, err := os.ReadFile("/proc/" + entry.Name() + "/stat")
		if err != nil {
			continue // it has just ended
		}
		if parent, ok := parentOf(string(text)); ok {
			parents[pid] = parent
		}
	}
	return below(root, parents)
}

// parentOf reads the parent from a line of proc_pid_stat(5). The name, in parentheses, may hold anything.
func parentOf(stat string) (int, bool) {
	_, rest, found := cutLast(stat, ") ")
	if !found {
		return 0, false
	}
	fields := strings.Fields(rest)
	if len(fields) < 2 {
		return 0, false
	}
	parent, err := strconv.Atoi(fields[1])
	return parent, err == nil
}

func cutLast(text, separator string) (before, after string, found bool) {
	at := strings.LastIndex(text, separator)
	if at < 0 {
		return text, "", false
	}
	return text[:at], text[at+len(separator):], true
}

func below(root int, parents map[int]int) []int {
	children := map[int][]int{}
	for pid, parent := range parents {
		children[parent] = append(children[parent], pid)
	}
	var found []int
	for next := children[root]; len(next) > 0; {
		pid := next[0]
		next = append(next[1:], children[pid]...)
		// /proc is not read at one moment: a loop is not possible, but would be endless.
		delete(children, pid)
		found = append(found, pid)
	}
	return found
}

func signalAll(pids []int, signals ...syscall.Signal) {
	for _, signal := range signals {
		for _, pid := range pids {
			_ = syscall.Kill(pid, signal) // it may have ended
		}
	}
}
