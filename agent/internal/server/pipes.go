package server

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// pipes connect the server with a session: three streams, orders, and the status at the end.
type pipes struct {
	input, output, errors, control, status *os.File

	theirs []*os.File
}

func openPipes() (*pipes, error) {
	var made pipes
	ours := []**os.File{&made.input, &made.output, &made.errors, &made.control, &made.status}
	for at, end := range ours {
		reader, writer, err := os.Pipe()
		if err != nil {
			made.closeTheirs()
			made.closeOurs()
			return nil, fmt.Errorf("no pipe: %w", err)
		}
		if at == 0 || at == 3 { // what goes to the session
			reader, writer = writer, reader
		}
		*end = reader
		made.theirs = append(made.theirs, writer)
	}
	return &made, nil
}

// theirFiles returns the descriptors in the order of the session's: 0 to 2 are the streams, 3 the control, 4 the status.
func (p *pipes) theirFiles() []uintptr {
	var files []uintptr
	for _, file := range p.theirs {
		files = append(files, file.Fd())
	}
	return files
}

func (p *pipes) closeTheirs() {
	for _, file := range p.theirs {
		_ = file.Close()
	}
}

func (p *pipes) closeOurs() {
	for _, file := range []*os.File{p.input, p.output, p.errors, p.control, p.status} {
		if file != nil {
			_ = file.Close()
		}
	}
}

// killSession kills all processes of the session that the process with that id led.
func killSession(leader int) {
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has just ended
		}
		// pid (name) state ppid pgrp session, proc_pid_stat(5); the name may hold anything.
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		if len(fields) < 4 || fields[3] != strconv.Itoa(leader) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
}
