// gitops reads an object and prints its health: as kstatus computes it, or as a health script of Argo CD does.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
)

func main() {
	object := &unstructured.Unstructured{}
	input, err := io.ReadAll(os.Stdin)
	if err == nil {
		err = object.UnmarshalJSON(input)
	}
	if err != nil {
		fail(err)
	}
	switch {
	case len(os.Args) == 2 && os.Args[1] == "kstatus":
		kstatus(object)
	case len(os.Args) == 3 && os.Args[1] == "argocd":
		argocd(object, os.Args[2])
	default:
		fail(fmt.Errorf("usage: gitops kstatus | argocd SCRIPT, with an object as JSON on stdin"))
	}
}

func kstatus(object *unstructured.Unstructured) {
	result, err := status.Compute(object)
	if err != nil {
		fail(err)
	}
	print(result.Status.String(), result.Message)
}

// argocd runs the script as Argo CD does: with the object as the global variable `obj`; it returns a table.
func argocd(object *unstructured.Unstructured, path string) {
	state := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer state.Close()
	for name, open := range map[string]lua.LGFunction{
		lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable, lua.StringLibName: lua.OpenString,
	} {
		state.Push(state.NewFunction(open))
		state.Push(lua.LString(name))
		state.Call(1, 0)
	}
	state.SetGlobal("obj", value(state, object.Object))
	if err := state.DoFile(path); err != nil {
		fail(err)
	}
	health, ok := state.Get(-1).(*lua.LTable)
	if !ok {
		fail(fmt.Errorf("%s returned no table", path))
	}
	print(health.RawGetString("status").String(), health.RawGetString("message").String())
}

func value(state *lua.LState, from any) lua.LValue {
	switch typed := from.(type) {
	case map[string]any:
		table := state.NewTable()
		for name, each := range typed {
			table.RawSetString(name, value(state, each))
		}
		return table
	case []any:
		table := state.NewTable()
		for _, each := range typed {
			table.Append(value(state, each))
		}
		return table
	case string:
		return lua.LString(typed)
	case bool:
		return lua.LBool(typed)
	case int64:
		return lua.LNumber(typed)
	case float64:
		return lua.LNumber(typed)
	default:
		return lua.LNil
	}
}

func print(health, message string) {
	if err := json.NewEncoder(os.Stdout).Encode(map[string]string{"status": health, "message": message}); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "gitops:", err)
	os.Exit(1)
}
