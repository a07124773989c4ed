// Package cgroup reads what the kernel tells of the control groups of processes: a container is one.
package cgroup

import (
	"cmp"
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// Below this, version 1 shows a number that stands for no limit (the largest multiple of a page).
const noLimit = math.MaxInt64 >> 12 << 12

// MemoryLimit returns the bytes of memory that this process and those in its group may have together, 0 if nothing limits them.
// A container's own group is mounted at the root, or, with the host's namespace of groups, in the place that /proc tells.
func MemoryLimit(root fs.FS) int64 {
	text, _ := fs.ReadFile(root, "proc/self/cgroup")
	version2, version1 := paths(string(text))
	for _, file := range []string{
		path.Join("sys/fs/cgroup", version2, "memory.max"),
		"sys/fs/cgroup/memory.max",
		path.Join("sys/fs/cgroup/memory", version1, "memory.limit_in_bytes"),
		"sys/fs/cgroup/memory/memory.limit_in_bytes",
	} {
		text, err := fs.ReadFile(root, file)
		if err != nil {
			continue
		}
		limit, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err != nil || limit <= 0 || limit >= noLimit {
			return 0
		}
		return limit
	}
	return 0
}

// Of returns the group of a process, of which /proc/PID/cgroup is the text: that of its memory, which each container has for itself.
// Other hierarchies, such as an unused one of version 2, need not tell containers apart.
func Of(text string) string {
	version2, version1 := paths(text)
	return cmp.Or(version1, version2)
}

// paths reads cgroups(7): lines of `0::/path` for version 2, and of `4:memory:/path` for version 1.
func paths(text string) (version2, version1 string) {
	for line := range strings.Lines(text) {
		fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(fields) < 3 {
			continue
		}
		if fields[1] == "" {
			version2 = fields[2]
		}
		for controller := range strings.SplitSeq(fields[1], ",") {
			if controller == "memory" {
				version1 = fields[2]
			}
		}
	}
	return version2, version1
}
