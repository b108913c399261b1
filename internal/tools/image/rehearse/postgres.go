package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/compose-spec/compose-go/v2/types"
)

// postgres plays the database with the machine's own programs, and with what the image
// would make of its environment: a user with a password, and a database.
func (s *stage) postgres(ctx context.Context, service types.ServiceConfig) (string, error) {
	bin, err := postgresPrograms()
	if err != nil {
		return "", err
	}
	env := func(key string) string {
		if v := service.Environment[key]; v != nil {
			return *v
		}
		return ""
	}
	owner, err := user.Lookup("postgres")
	if err != nil {
		if owner, err = user.Lookup("nobody"); err != nil {
			return "", err
		}
	}
	uid, uerr := strconv.Atoi(owner.Uid)
	gid, gerr := strconv.Atoi(owner.Gid)
	if err := errors.Join(uerr, gerr, os.Chmod(s.work, 0o755)); err != nil {
		return "", err
	}
	dir := filepath.Join(s.work, "postgres")
	secret := filepath.Join(dir, "password")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(secret, []byte(env("POSTGRES_PASSWORD")), 0o600),
		os.Chown(dir, uid, gid), os.Chown(secret, uid, gid)); err != nil {
		return "", err
	}
	c := &container{
		name: "postgres", root: "/", image: &image{}, user: syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, grace: patience,
		env: []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "PGPASSWORD=" + env("POSTGRES_PASSWORD")},
	}
	if text, err := c.exec(ctx, []string{filepath.Join(bin, "initdb"), "-D", filepath.Join(dir, "data"), "-U", env("POSTGRES_USER"), "--pwfile=" + secret, "-A", "scram-sha-256", "-E", "UTF8", "--no-sync"}); err != nil {
		return "", fmt.Errorf("initdb: %w\n%s", err, text)
	}
	// As the image does: from the other containers, with the password.
	hba := filepath.Join(dir, "data", "pg_hba.conf")
	text, err := os.ReadFile(hba)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(hba, append(text, "host all all all scram-sha-256\n"...), 0o600); err != nil {
		return "", err
	}
	c.args = []string{filepath.Join(bin, "postgres"), "-D", filepath.Join(dir, "data"), "-c", "listen_addresses=*", "-c", "unix_socket_directories=" + dir}
	if err := c.start(ctx); err != nil {
		return "", err
	}
	s.running = append(s.running, c)
	c.image.health = append([]string{filepath.Join(bin, service.HealthCheck.Test[1])}, service.HealthCheck.Test[2:]...)
	if err := c.healthy(ctx); err != nil {
		return "", err
	}
	said, err := c.exec(ctx, []string{filepath.Join(bin, "psql"), "-h", "127.0.0.1", "-U", env("POSTGRES_USER"), "-d", "postgres", "-c", "CREATE DATABASE " + env("POSTGRES_DB")})
	if err != nil {
		return "", fmt.Errorf("create database: %w\n%s", err, said)
	}
	version, err := exec.CommandContext(ctx, filepath.Join(bin, "postgres"), "--version").Output()
	return "healthy, as " + strings.TrimSpace(string(version)), err
}

func postgresPrograms() (string, error) {
	if initdb, err := exec.LookPath("initdb"); err == nil {
		if real, err := filepath.EvalSymlinks(initdb); err == nil {
			return filepath.Dir(real), nil
		}
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err == nil && len(found) == 0 {
		err = errors.New("no initdb on this machine; install PostgreSQL")
	}
	if err != nil {
		return "", err
	}
	return filepath.Dir(found[len(found)-1]), nil
}
