// probe is what a pod needs to show that the cluster's network works: it serves, fetches and looks names up.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

func main() {
	if len(os.Args) < 2 {
		fail(fmt.Errorf("usage: probe serve | get URL | lookup NAME"))
	}
	switch os.Args[1] {
	case "serve":
		serve()
	case "get":
		get(os.Args[2])
	case "lookup":
		lookup(os.Args[2])
	default:
		fail(fmt.Errorf("no command %q", os.Args[1]))
	}
}

func serve() {
	name, err := os.Hostname()
	fail(err)
	fmt.Println("serving as", name)
	fail(http.ListenAndServe(":8080", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, name)
	})))
}

func get(url string) {
	client := http.Client{Timeout: 5 * time.Second}
	response, err := client.Get(url)
	fail(err)
	_, err = io.Copy(os.Stdout, response.Body)
	fail(err)
}

func lookup(name string) {
	addresses, err := net.LookupHost(name)
	fail(err)
	fmt.Println(strings.Join(addresses, "\n"))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
}
