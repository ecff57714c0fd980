package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
)

// bailed is the exit code by which the executor says that the user has already seen the error.
const bailed = 32

// Run runs a program through the SDK's executor, and comes back when it has ended.
func (h *host) Run(ctx context.Context, r *pulumirpc.RunRequest) (*pulumirpc.RunResponse, error) {
	script, err := executor()
	if err != nil {
		return nil, err
	}
	config, err := json.Marshal(orEmpty(r.Config))
	if err != nil {
		return nil, err
	}
	secrets, err := json.Marshal(append([]string{}, r.ConfigSecretKeys...))
	if err != nil {
		return nil, err
	}
	command := exec.CommandContext(ctx, python(r.Info), append([]string{"-u", script}, h.executorArguments(r)...)...)
	command.Dir = r.Pwd
	command.Env = append(os.Environ(), "PULUMI_CONFIG="+string(config), "PULUMI_CONFIG_SECRET_KEYS="+string(secrets))
	command.Stdout, command.Stderr = os.Stdout, os.Stderr
	err = runChild(command)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return &pulumirpc.RunResponse{}, nil
	case errors.As(err, &exit) && exit.ExitCode() == bailed:
		return &pulumirpc.RunResponse{Bail: true}, nil
	case errors.As(err, &exit):
		return &pulumirpc.RunResponse{Error: fmt.Sprintf("the program ended with exit code %d", exit.ExitCode())}, nil
	}
	return nil, fmt.Errorf("starting %s: %w", command.Path, err)
}

func (h *host) executorArguments(r *pulumirpc.RunRequest) []string {
	var arguments []string
	add := func(name, value string) {
		if value != "" {
			arguments = append(arguments, "--"+name, value)
		}
	}
	add("monitor", r.MonitorAddress)
	add("engine", h.engine)
	add("project", r.Project)
	add("stack", r.Stack)
	add("pwd", r.Pwd)
	add("dry_run", strconv.FormatBool(r.DryRun))
	add("parallel", strconv.Itoa(int(r.Parallel)))
	add("organization", r.Organization)
	add("root_directory", r.Info.GetRootDirectory())
	program := r.Info.GetEntryPoint()
	if program == "" || program == "." {
		program = r.Info.GetProgramDirectory()
	}
	return append(append(arguments, program), r.Args...)
}

// RunPlugin runs a policy pack or a provider that is written in Python, and streams its output until it ends.
func (h *host) RunPlugin(r *pulumirpc.RunPluginRequest, stream grpc.ServerStreamingServer[pulumirpc.RunPluginResponse]) error {
	program := r.Info.GetProgramDirectory()
	if entry := r.Info.GetEntryPoint(); entry != "" && entry != "." {
		program = filepath.Join(program, entry)
	}
	arguments := append([]string{"-u", program}, r.Args...)
	if r.Kind == "analyzer" {
		arguments = append(append([]string{"-u", "-m", "pulumi.policy"}, r.Args...), program)
	}
	command := exec.CommandContext(stream.Context(), python(r.Info), arguments...)
	command.Dir, command.Env = r.Pwd, r.Env
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGTERM) }
	command.WaitDelay = 3 * time.Second
	var sending sync.Mutex // a gRPC stream takes one sender at a time
	command.Stdout = writer(func(p []byte) error {
		sending.Lock()
		defer sending.Unlock()
		return stream.Send(&pulumirpc.RunPluginResponse{Output: &pulumirpc.RunPluginResponse_Stdout{Stdout: p}})
	})
	command.Stderr = writer(func(p []byte) error {
		sending.Lock()
		defer sending.Unlock()
		return stream.Send(&pulumirpc.RunPluginResponse{Output: &pulumirpc.RunPluginResponse_Stderr{Stderr: p}})
	})
	err := runChild(command)
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) && stream.Context().Err() == nil {
		return err
	}
	code := int32(0)
	if exit != nil {
		code = int32(exit.ExitCode())
	}
	return stream.Send(&pulumirpc.RunPluginResponse{Output: &pulumirpc.RunPluginResponse_Exitcode{Exitcode: code}})
}

// runChild runs a command that must not outlive this process: the kernel ends it with the thread that started it.
func runChild(command *exec.Cmd) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	return command.Run()
}

type writer func([]byte) error

func (w writer) Write(p []byte) (int, error) {
	if err := w(append([]byte(nil), p...)); err != nil {
		return 0, err
	}
	return len(p), nil
}

var _ io.Writer = writer(nil)

// orEmpty gives an empty map for none: the executor reads {}, not null.
func orEmpty(config map[string]string) map[string]string {
	if config == nil {
		return map[string]string{}
	}
	return config
}
