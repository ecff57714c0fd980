package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// python returns a program's interpreter: that of its virtualenv option, PULUMI_PYTHON_CMD, or python3 on PATH.
func python(info *pulumirpc.ProgramInfo) string {
	if venv := info.GetOptions().GetFields()["virtualenv"].GetStringValue(); venv != "" {
		if !filepath.IsAbs(venv) {
			venv = filepath.Join(info.RootDirectory, venv)
		}
		return filepath.Join(venv, "bin", "python")
	}
	if command := os.Getenv("PULUMI_PYTHON_CMD"); command != "" {
		return command
	}
	return "python3"
}

// executor returns the path of the SDK's script that connects a Python program to the engine.
func executor() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return "", err
	}
	script := filepath.Join(filepath.Dir(self), "pulumi-language-python-exec")
	if _, err := os.Stat(script); err != nil {
		return "", fmt.Errorf("the Python SDK's executor is missing: %w", err)
	}
	return script, nil
}

func (h *host) About(_ context.Context, r *pulumirpc.AboutRequest) (*pulumirpc.AboutResponse, error) {
	var about struct{ Executable, Version string }
	err := ask(python(r.Info), `import json,sys,platform
print(json.dumps({"Executable": sys.executable, "Version": platform.python_version()}))`, &about)
	return &pulumirpc.AboutResponse{Executable: about.Executable, Version: about.Version}, err
}

func (h *host) GetProgramDependencies(_ context.Context, r *pulumirpc.GetProgramDependenciesRequest) (*pulumirpc.GetProgramDependenciesResponse, error) {
	versions := map[string]string{}
	err := ask(python(r.Info), `import json,importlib.metadata as m
print(json.dumps({d.metadata["Name"]: d.version for d in m.distributions()}))`, &versions)
	if err != nil {
		return nil, err
	}
	response := &pulumirpc.GetProgramDependenciesResponse{}
	for name, version := range versions {
		response.Dependencies = append(response.Dependencies, &pulumirpc.DependencyInfo{Name: name, Version: version})
	}
	sort.Slice(response.Dependencies, func(i, j int) bool { return response.Dependencies[i].Name < response.Dependencies[j].Name })
	return response, nil
}

// ask runs a Python snippet that prints JSON and reads it into answer.
func ask(interpreter, snippet string, answer any) error {
	out, err := exec.Command(interpreter, "-c", snippet).Output()
	if err != nil {
		return fmt.Errorf("asking %s: %w", interpreter, err)
	}
	return json.Unmarshal(out, answer)
}
