package session

import (
	"os"
	"slices"
	"strconv"
	"testing"
)

func TestParentInAnyLine(t *testing.T) {
	for line, want := range map[string]int{
		"7 (sh) S 1 7 7 0": 1, "7 (a) b) R 12 7": 12, "7 (evil) S 1) Z 33 7": 33,
	} {
		if got, ok := parentOf(line); !ok || got != want {
			t.Errorf("%q: got %d, %v", line, got, ok)
		}
	}
	for _, line := range []string{"", "7 (sh)", "7 (sh) S", "7 (sh) S x"} {
		if got, ok := parentOf(line); ok {
			t.Errorf("%q: got %d", line, got)
		}
	}
}

func TestAllBelowAProcess(t *testing.T) {
	got := below(1, map[int]int{2: 1, 3: 2, 4: 3, 5: 9, 6: 1, 8: 8})
	slices.Sort(got)
	if !slices.Equal(got, []int{2, 3, 4, 6}) {
		t.Errorf("got %v", got)
	}
	if !slices.Contains(descendants(os.Getppid()), os.Getpid()) {
		t.Error("a process was not found below its parent")
	}
}

func FuzzParentOf(f *testing.F) {
	f.Add("7 (sh) S 1 7 7 0")
	f.Fuzz(func(t *testing.T, name string) {
		if got, ok := parentOf("7 (" + name + ") S " + strconv.Itoa(12) + " 7 7"); !ok || got != 12 {
			t.Errorf("%q: got %d, %v", name, got, ok)
		}
	})
}
