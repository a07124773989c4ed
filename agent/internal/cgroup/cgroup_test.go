package cgroup

import (
	"testing"
	"testing/fstest"
)

func TestTheMemoryOfAContainer(t *testing.T) {
	for name, row := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"version 2":                       {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "268435456\n"}, 268435456},
		"version 2, without a limit":      {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, 0},
		"version 2, the host's namespace": {map[string]string{"proc/self/cgroup": "0::/pod/c\n", "sys/fs/cgroup/pod/c/memory.max": "4096\n"}, 4096},
		"version 2, /proc tells of the host, the mount is the container's": {map[string]string{
			"proc/self/cgroup": "0::/pod/c\n", "sys/fs/cgroup/memory.max": "8192\n"}, 8192},
		"version 1": {map[string]string{
			"proc/self/cgroup": "4:cpu,memory:/pod/c\n0::/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "67108864\n"}, 67108864},
		"version 1, the host's namespace": {map[string]string{
			"proc/self/cgroup": "4:memory:/pod/c\n", "sys/fs/cgroup/memory/pod/c/memory.limit_in_bytes": "1024\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 1024},
		"version 1, without a limit": {map[string]string{"sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0},
		"nothing is mounted":         {map[string]string{"proc/self/cgroup": "0::/\n"}, 0},
		"no number":                  {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "a lot\n"}, 0},
	} {
		files := fstest.MapFS{}
		for path, text := range row.files {
			files[path] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := MemoryLimit(files); got != row.want {
			t.Errorf("%s: got %d", name, got)
		}
	}
}

func TestTheGroupOfAProcess(t *testing.T) {
	for text, want := range map[string]string{
		"0::/\n": "/", "0::/../c2\n": "/../c2", "9:pids:/a\n4:cpu,memory:/pod/c1\n0::/system\n": "/pod/c1", "9:pids:/a\n0::/b\n": "/b",
		"": "", "memory": "", "0:x": "", "4:memory:/a:b\n": "/a:b",
	} {
		if got := Of(text); got != want {
			t.Errorf("%q: got %q", text, got)
		}
	}
}

func FuzzMemoryLimit(f *testing.F) {
	f.Add("0::/\n4:cpu,memory:/a:b\n", "268435456\n")
	f.Add("0::/../..\n", "max")
	f.Fuzz(func(t *testing.T, groups, limit string) {
		root := fstest.MapFS{"proc/self/cgroup": &fstest.MapFile{Data: []byte(groups)}, "sys/fs/cgroup/memory.max": &fstest.MapFile{Data: []byte(limit)}}
		if got := MemoryLimit(root); got < 0 {
			t.Errorf("got %d", got)
		}
	})
}
