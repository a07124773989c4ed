// Package install puts the running program into a folder that other containers mount.
package install

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Name is what the program is called there.
const Name = "mpiop-agent"

// Into copies the running program into folder, for every user to run. A copy that is there already is replaced at once, not
// written over: it may be running.
func Into(folder string) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("cannot find the running program: %w", err)
	}
	source, err := os.Open(self)
	if err != nil {
		return fmt.Errorf("cannot read the running program: %w", err)
	}
	defer source.Close()
	copied, err := os.CreateTemp(folder, "."+Name+"-")
	if err != nil {
		return fmt.Errorf("cannot write to %s: %w", folder, err)
	}
	defer os.Remove(copied.Name()) // after the rename there is nothing of that name
	_, err = io.Copy(copied, source)
	if err == nil {
		err = copied.Chmod(0o555)
	}
	if closed := copied.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(copied.Name(), filepath.Join(folder, Name))
	}
	if err != nil {
		return fmt.Errorf("cannot install into %s: %w", folder, err)
	}
	return nil
}
