package secretscan_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/memsvc/memsvc/internal/secretscan"
	"github.com/memsvc/memsvc/internal/secretscan/secretscantest"
)

// TestEvasionMatrix scans every kind of token in every form.
func TestEvasionMatrix(t *testing.T) {
	s := secretscan.New(secretscan.Options{})
	all := secretscantest.Matrix()
	missed := 0
	for _, p := range all {
		fs, err := s.Scan(p.Path, []byte(p.Content))
		if err != nil {
			t.Fatalf("%s: %v", p.ID, err)
		}
		hit := false
		for _, f := range fs {
			hit = hit || f.Line == p.Line
		}
		if !hit {
			missed++
			t.Logf("missed %s: want line %d, got %v in %q", p.ID, p.Line, brief(fs), p.Content)
		}
	}
	t.Logf("guard evasion matrix: %d of %d missed (%.1f %%)", missed, len(all), percent(missed, len(all)))
	if percent(missed, len(all)) > maxMissPercent {
		t.Errorf("missed %d of %d", missed, len(all))
	}
}

// TestFindingsHoldNoSecret looks for every planted value in every field of its findings.
func TestFindingsHoldNoSecret(t *testing.T) {
	s := secretscan.New(secretscan.Options{})
	for _, p := range append(secretscantest.Secrets(), secretscantest.Matrix()...) {
		path := p.Path
		if p.Line == 0 {
			path = "" // the path is given back as it came
		}
		fs, err := s.Scan(p.Path, []byte(p.Content))
		if err != nil {
			t.Fatalf("%s: %v", p.ID, err)
		}
		for _, f := range fs {
			if p.Line == 0 {
				f.Path = path
			}
			if text := fmt.Sprintf("%+v", f); strings.Contains(text, p.Secret) || strings.Contains(text, p.Written) {
				t.Errorf("%s: finding holds the secret: %s", p.ID, text)
			}
		}
	}
}

// TestHostileTextsEndInTime scans texts of the largest size that are made to be slow. What counts is how long it
// computes, whatever else the machine does. The bound is wide, since machines differ and the race detector slows; what
// is quadratic takes minutes to hours.
func TestHostileTextsEndInTime(t *testing.T) {
	s := secretscan.New(secretscan.Options{CacheEntries: -1})
	nested := "postgres://app:Xk9mPq2vLw@db/x "
	for len(nested) < secretscan.MaxContentBytes/2 {
		nested = base64.StdEncoding.EncodeToString([]byte(nested + nested))
	}
	for name, unit := range map[string]string{
		"a": "a", "=": "=", "lines": "a\n", "base64": base64.StdEncoding.EncodeToString([]byte("harmless words, ")), "nested": nested,
		"eye": "ey", "password": "password ", "password is": "password is ", "secret:": "secret: ", "scheme": "://", "at": "x://a:b@",
		"curl": "curl -u a:b -p c\n", "table": "| password |\n|-|\n", "percent": "%41", "entities": "&#65;", "zero width": "a\u200b",
		"full width": "ａ：", "begin": "-----BEGIN RSA PRIVATE KEY-----\n", "hex lines": "0123456789abcdef0123456789abcdef\n", "sk": "sk_live_", "bars": "|", "login": "login:/",
		"key=": "key=aB3dE5fG7h ", "twelve": "token = a1B2c3D4e5F6g7H8i9J0\n", "chinese": "密码是", "escapes": `\u0041`, "quotes": "password = \"", "ticks": "`password` ",
		"flags": "curl -uab:Kd82nq1Xz ", "csv": strings.Repeat("password,", 100) + "x\n", "vendor": "gsk_a1B2c3D4e5F6", "particles": "パスワードを",
		"signature": "?se=1&sv=2&sig=" + strings.Repeat("aB3x9Q", 9), "pairs": "name: password\n value x ", "variables": `variable "password" `, "pipes": "echo x|sudo -S ",
		"strokes": "admin / Kd82nq1X! ", "cells": "| password | a b |", "arguments": "net user a Kd82nq1X ", "brackets": " Kd82nq1X (password", "sections": `"a:a:a:password" `,
		"headings": "## Logins\n- a: b, c / d -> e\n", "one heading": "## Passwords\n" + strings.Repeat("- a: b, c / d -> e\n", 60), "labels": "credentials:\nx -> Kd82nq1X\n",
		"recovery": "recovery code: aB3dE5-fG7hI9 ", "long lists": "recovery code:\n" + strings.Repeat("a1b2c3d4e5 ", 180) + "\n", "seeds": "totp ABCDEFGHIJKLMNO2 ",
		"spaced seeds": "2fa abcd efgh ijk2 mn34 ", "cookies": "cookie: sid=a; ", "sent": `password: send "a\r" `, "shares": `net use \\a b /user:x `, "lists of users": `userlist "a" "b" `,
		"beside admin": "admin and Kd82nq1X! ", "log in as": "log in as a (b) ", "ssh": "ssh a@b with pw c ", "signed with": "signed with 0123456789abcdef ", "han": "密码还是老的那个 ",
		"used": "用 a（b）登录", "questions": "a: pw?\nb: Kd82nq1X!\n", "wifi": "wifi:S:a;P:b;", "schemes": "authorization: token a ", "digests": `digest username="a", response="0 `,
		"changes": "reset the admin account, it's now a ", "app passwords": "app password abcd efgh ", "selectors": "password: input[name=a] ",
		"rows": strings.Repeat("| password ", 150) + "\n|-|\n" + strings.Repeat("| Kd82nq1x ", 150) + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Repeat(unit, max(1, secretscan.MaxContentBytes/secretscan.Slow/len(unit)))
			begin := cpuTime(t)
			// Refusing to judge such a text is as good as an answer.
			if _, err := s.Scan("a.md", []byte(text)); err != nil && !errors.Is(err, secretscan.ErrTooLarge) {
				t.Fatal(err)
			}
			took := cpuTime(t) - begin
			t.Logf("%v", took.Round(time.Millisecond))
			if took > 30*time.Second {
				t.Errorf("took %v", took)
			}
		})
	}
}
