package hosts

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestFormsOfAHost(t *testing.T) {
	job := Job{Name: "pi", Namespace: "default"}
	for host, want := range map[string]struct {
		kind  Kind
		index string
	}{
		"pi-worker-0":                              {Worker, "0"},
		"pi-worker-12.pi":                          {Worker, "12"},
		"pi-worker-1.pi.default":                   {Worker, "1"},
		"pi-worker-1.pi.default.svc":               {Worker, "1"},
		"pi-worker-1.pi.default.svc.cluster.local": {Worker, "1"},
		"pi-launcher":                              {Launcher, ""},
		"pi-launcher.pi.default.svc":               {Launcher, ""},
		"pi-worker-01":                             {Other, ""},
		"pi-worker-":                               {Other, ""},
		"pi-worker-x":                              {Other, ""},
		"pi-worker-1.other.default.svc":            {Other, ""},
		"pi-worker-1.pi.default.svcs":              {Other, ""},
		"e-worker-1":                               {Other, ""},
		"10.0.0.7":                                 {Other, ""},
		"":                                         {Other, ""},
	} {
		kind, index := job.Classify(host)
		if kind != want.kind || index != want.index {
			t.Errorf("%q: got %v %q", host, kind, index)
		}
	}
}

func TestAddressesOfTheFile(t *testing.T) {
	file := Addresses{filepath.Join(t.TempDir(), "addresses")}
	if address, byName := file.Find("0"); address != "" || byName {
		t.Error("a file that is missing tells something")
	}
	if err := os.WriteFile(file.Path, []byte("0 10.0.0.1\n1 ended\n12 10.0.0.3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for index, want := range map[string]string{"0": "10.0.0.1", "1": Ended, "12": "10.0.0.3", "2": "", "": ""} {
		if address, byName := file.Find(index); address != want || byName {
			t.Errorf("%q: got %q, %v", index, address, byName)
		}
	}
	if file.HaveNo("99") {
		t.Error("a file without a count misses a worker")
	}
	if err := os.WriteFile(file.Path, []byte("workers 2\n0 10.0.0.1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if file.HaveNo("0") || file.HaveNo("1") || !file.HaveNo("2") {
		t.Error("of 2 workers, those with the indexes 0 and 1 are there")
	}
	if _, byName := find("by-name\n", "0"); !byName {
		t.Error("by-name was not understood")
	}
}

func FuzzFind(f *testing.F) {
	f.Add("0 10.0.0.1\n1 ended\n", "1")
	f.Add("by-name", "0")
	f.Fuzz(func(t *testing.T, text, index string) {
		address, _ := find(text, index)
		if address != "" && !strings.Contains("\n"+text, "\n"+index+" "+address) {
			t.Errorf("%q has no line for %q with %q", text, index, address)
		}
	})
}

func FuzzClassify(f *testing.F) {
	f.Add("pi", "default", "pi-worker-1.pi.default.svc")
	f.Fuzz(func(t *testing.T, name, namespace, host string) {
		kind, index := Job{name, namespace}.Classify(host)
		if kind == Worker && !strings.HasPrefix(host, name+"-worker-"+index) {
			t.Errorf("%q is no worker %q of %q", host, index, name)
		}
	})
}

func TestHostsOfAHostfile(t *testing.T) {
	const text = "# of a job\npi-worker-0.pi.default.svc slots=2\n\n pi-worker-1:4\npi-launcher\n"
	if got := Listed(text); !slices.Equal(got, []string{"pi-worker-0.pi.default.svc", "pi-worker-1", "pi-launcher"}) {
		t.Errorf("got %q", got)
	}
}
