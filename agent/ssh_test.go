package main

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// The launcher's standard error may be a file of the user's, which is not to be opened again.
func TestTheLogIsWrittenToOnlyIfItIsNoFileOfTheUsers(t *testing.T) {
	folder := t.TempDir()
	file, pipe, unread := filepath.Join(folder, "run.log"), filepath.Join(folder, "pipe"), filepath.Join(folder, "unread")
	check(t, os.WriteFile(file, []byte("run 4711 begins\n"), 0o600))
	check(t, syscall.Mkfifo(pipe, 0o600))
	check(t, syscall.Mkfifo(unread, 0o600))
	reader, err := os.OpenFile(pipe, os.O_RDWR, 0)
	check(t, err)
	defer reader.Close()
	link := filepath.Join(folder, "fd")
	for target, isOpened := range map[string]bool{file: false, pipe: true, unread: false, os.DevNull: true, "/no/such/file": false} {
		check(t, os.Symlink(target, link))
		log := openLog(link)
		if (log != nil) != isOpened {
			t.Errorf("%s: opened %v", target, log != nil)
		}
		if log != nil {
			check(t, log.Close())
		}
		check(t, os.Remove(link))
	}
	one, err := os.Open(file)
	check(t, err)
	defer one.Close()
	if !isSame(one, one) || isSame(one, reader) {
		t.Error("files are not compared")
	}
}
