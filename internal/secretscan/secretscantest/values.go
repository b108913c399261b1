package secretscantest

import (
	"encoding/base64"
	"fmt"
	"hash/crc32"
	"net/url"
	"strconv"
	"strings"
)

const (
	lower  = "abcdefghijklmnopqrstuvwxyz"
	upper  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	digits = "0123456789"
	alnum  = lower + upper + digits
	hexDig = digits + "abcdef"
	b64Dig = alnum + "+/"
)

func (g *generator) from(set string, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = set[g.rand.IntN(len(set))]
	}
	return string(b)
}

func (g *generator) pick(list ...string) string { return list[g.rand.IntN(len(list))] }

// mixed is n characters of set that hold a lower-case letter, a capital and a digit.
func (g *generator) mixed(set string, n int) string {
	for {
		s := g.from(set, n)
		if strings.ContainsAny(s, lower) && strings.ContainsAny(s, upper) && strings.ContainsAny(s, digits) {
			return s
		}
	}
}

// lowerDigits is n small letters and digits, both of them there.
func (g *generator) lowerDigits(n int) string {
	for {
		s := g.from(lower+digits, n)
		if strings.ContainsAny(s, lower) && strings.ContainsAny(s, digits) {
			return s
		}
	}
}

// harmlessKinds are values that are no secrets.
func harmlessKinds() []string {
	return []string{"sha1", "sha256", "md5", "b64_64", "b64_48", "b64_32", "shortid", "docid", "hex16", "sha12"}
}

func known(kind string) bool {
	g := newGenerator("known")
	return g.make(kind) != ""
}

// value makes a value up, and remembers the first secret.
func (g *generator) value(kind string) string {
	v := g.make(kind)
	if v == "" {
		panic("secretscantest: unknown kind " + kind)
	}
	for _, k := range harmlessKinds() {
		if k == kind {
			return v
		}
	}
	if g.secret == "" {
		g.secret = v
		if lines := strings.Split(v, "\n"); len(lines) > 2 {
			g.secret = lines[1]
		}
	}
	return v
}

// make returns a value of the kind: right prefix, length, alphabet and, where the kind has one, checksum. Nobody issued it.
func (g *generator) make(kind string) string {
	switch kind {
	case "aws_key":
		return g.pick("AKIA", "ASIA") + g.from(upper+"234567", 16)
	case "aws_secret":
		return g.mixed(b64Dig, 40)
	case "github_pat":
		// The last six characters are a base-62 CRC-32 of the thirty before.
		body := g.mixed(alnum, 30)
		return "ghp_" + body + base62(crc32.ChecksumIEEE([]byte(body)))
	case "github_tail":
		body := g.mixed(alnum, 30)
		return body + base62(crc32.ChecksumIEEE([]byte(body)))
	case "gitlab_pat":
		return "glpat-" + g.mixed(alnum, 20)
	case "slack_bot":
		return "xoxb-" + g.from("123456789", 12) + "-" + g.from(digits, 12) + "-" + g.mixed(alnum, 24)
	case "stripe":
		return "sk_live_" + g.mixed(alnum, 24)
	case "anthropic":
		return "sk-ant-" + "api03-" + g.mixed(alnum+"_-", 92) + "xAA"
	case "openai":
		return "sk-" + g.mixed(alnum, 20) + "T3Blbk" + "FJ" + g.mixed(alnum, 20)
	case "gcp":
		return "AIza" + g.mixed(alnum+"-_", 34) + "x"
	case "npm":
		return "npm_" + g.mixed(alnum, 36)
	case "pypi":
		return "pypi-AgEIcHlwaS5vcmc" + g.mixed(alnum+"_-", 80)
	case "jwt":
		enc := base64.RawURLEncoding.EncodeToString
		claims := fmt.Sprintf(`{"sub":"%s","name":"Build Bot","iat":17%s}`, g.from(digits, 10), g.from(digits, 8))
		return enc([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + enc([]byte(claims)) + "." + g.mixed(alnum+"_-", 42) + "k"
	case "sendgrid":
		return "SG." + g.mixed(alnum, 22) + "." + g.mixed(alnum, 43)
	case "digitalocean":
		return "dop_v1_" + g.from(hexDig, 64)
	case "shopify":
		return "shpat_" + g.from(hexDig, 32)
	case "huggingface":
		return "hf_" + g.from(lower+upper, 34)
	case "vault":
		return "hvs." + g.mixed(alnum, 94) + "q"
	case "databricks":
		return "dapi" + g.from(hexDig, 32)
	case "telegram":
		return g.from("123456789", 10) + ":A" + g.mixed(alnum, 34)
	case "telegram_aa":
		return g.from("123456789", 10) + ":AA" + g.mixed(alnum+"_-", 32) + "k"
	case "gocspx":
		return "GOCSPX-" + g.mixed(alnum+"_-", 27) + "k"
	case "groq":
		return "gsk_" + g.mixed(alnum, 52)
	case "replicate":
		return "r8_" + g.mixed(alnum, 37)
	case "notion":
		return "ntn_" + g.from(digits, 11) + g.mixed(alnum, 35)
	case "supabase":
		return "sbp_" + g.from(hexDig, 40)
	case "tailscale":
		return "tskey-auth-" + g.mixed(alnum, 12) + "CNTRL-" + g.mixed(alnum, 32)
	case "sas":
		return url.QueryEscape(g.mixed(b64Dig, 43) + "=")
	case "dockerhub":
		return "dckr_" + "pat_" + g.mixed(alnum+"_-", 26) + "k"
	case "xai":
		return "xai-" + g.mixed(alnum, 80)
	case "openrouter":
		return "sk-or-" + "v1-" + g.from(hexDig, 64)
	case "discord":
		return g.mixed(alnum+"_-", 67) + "k"
	case "figma":
		return "figd_" + g.mixed(alnum+"_-", 39) + "k"
	case "nvidia":
		return "nvapi-" + g.mixed(alnum+"_-", 63) + "k"
	case "bitbucket":
		return "ATBB" + g.mixed(alnum, 32)
	case "google_refresh":
		return "1//0" + g.mixed(alnum+"_-", 97) + "k"
	case "base32":
		return g.from(upper+"234567", 32)
	case "age":
		return "AGE-SECRET" + "-KEY-1" + g.from("QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58)
	case "msv":
		return "msv_" + g.mixed(alnum, 40)
	case "msvi":
		return "msvi_AQ" + g.mixed(alnum+"_-", 157) + "k"
	case "uuid":
		return g.from(hexDig, 8) + "-" + g.from(hexDig, 4) + "-4" + g.from(hexDig, 3) + "-a" + g.from(hexDig, 3) + "-" + g.from(hexDig, 12)
	case "pw":
		return g.mixed(alnum, 7) + g.pick("!", "#", "%", "&", "*", "?", "@") + g.mixed(alnum, 4)
	case "pw_alnum":
		return g.mixed(alnum, 14)
	case "pw_url":
		return g.mixed(alnum, 8) + g.pick("!", "*", "-", "~") + g.mixed(alnum, 4)
	case "pw_lower":
		for {
			if s := g.from(lower+digits, 12); strings.ContainsAny(s, lower) && strings.ContainsAny(s, digits) {
				return s
			}
		}
	case "alnum30":
		return g.mixed(alnum, 30)
	case "alnum24":
		return g.mixed(alnum, 24)
	case "b64key44":
		// A share of a vault's unseal key: 33 bytes.
		return g.mixed(b64Dig, 44)
	case "hex66":
		return g.from(hexDig, 66)
	case "vault_root":
		return "hvs." + g.mixed(alnum, 24)
	case "base32_16":
		return g.from(upper+"234567", 16)
	case "base32_spaced":
		return cut(g.from(lower+"234567", 32), 8, " ")
	case "b64pct":
		return url.QueryEscape(g.mixed(b64Dig, 60) + "==")
	case "hexupper32":
		return strings.ToUpper(g.from(hexDig, 32))
	case "b64_86":
		return g.mixed(b64Dig, 86)
	case "code_dash":
		return g.lowerDigits(5) + "-" + g.lowerDigits(5)
	case "code8":
		return g.lowerDigits(8)
	case "digits8":
		return g.from("123456789", 8)
	case "code_caps":
		return cut(strings.ToUpper(g.lowerDigits(12)), 3, "-")
	case "recovery_key":
		return cut(strings.ToUpper(g.lowerDigits(28)), 7, "-")
	case "bitlocker":
		return cut(g.from(digits, 48), 8, "-")
	case "kubeadm":
		return g.lowerDigits(6) + "." + g.lowerDigits(16)
	case "swarm":
		return g.lowerDigits(50) + "-" + g.lowerDigits(25)
	case "lower16":
		// A mail provider's code for programs.
		return g.from(lower, 16)
	case "hex16s":
		return g.from(hexDig, 16)
	case "pw_human":
		word := g.pick("Falcon", "Harbour", "Lisbon", "Ferrari", "Welcome", "Sunny", "Marble", "Ledger", "Acme", "Cobalt")
		year := g.pick("2019", "2021", "2024", "2026", "77", "123", "007", "42")
		switch g.rand.IntN(6) {
		case 0:
			return word + "@" + year + g.pick("", "!", "#")
		case 1:
			return word + year + g.pick("!", "!!", "#", "*", "$")
		case 2:
			return word + "#" + g.pick("Prod", "Root", "Team") + year
		case 3:
			return year + word + year + g.pick("", "!")
		case 4:
			return strings.ToLower(word) + g.pick("Box", "Hill", "Gate") + year
		}
		return strings.NewReplacer("a", "4", "e", "3", "o", "0", "s", "5").Replace(word) + g.pick("!", "_", "") + year
	case "pw_pascal":
		return g.pick("Long", "Blue", "Slow") + g.pick("Rag", "Fox", "Elm") + g.pick("Halts", "Sings", "Turns") + g.pick("Lied", "Cold", "Once")
	case "pw_caps":
		return g.pick("FERRARI", "LISBON", "HARBOUR", "COBALT") + g.from(digits, 2)
	case "pw_plain":
		return g.pick("ledger", "harbour", "cobalt") + "_" + g.pick("main", "prod", "core")
	case "pw_mixed_lower":
		return g.from("bcdfghjkmnpqrstvwxz", 4) + g.from(digits, 2) + g.from(lower, 4) + g.from(digits, 2)
	case "pw_weak":
		return g.pick("Summer", "Winter", "Berlin", "Dragon", "Monday") + g.from(digits, 4) + g.pick("", "!")
	case "passphrase":
		return strings.Join([]string{g.pick("copper", "violet", "hollow"), g.pick("tractor", "lantern", "harbor"), g.pick("mostly", "seldom", "nearly"), g.pick("sings", "waits", "melts")}, "-")
	case "b64key":
		return g.mixed(b64Dig, 43) + "="
	case "hex16", "hex32", "hex40", "hex64":
		return g.from(hexDig, number(strings.TrimPrefix(kind, "hex")))
	case "sha1":
		return g.from(hexDig, 40)
	case "sha12":
		return g.from(hexDig, 12)
	case "sha256":
		return g.from(hexDig, 64)
	case "md5":
		return g.from(hexDig, 32)
	case "b64_64", "b64_48", "b64_32":
		return g.mixed(b64Dig, number(strings.TrimPrefix(kind, "b64_")))
	case "shortid":
		return g.mixed(alnum, 8)
	case "docid":
		return "1" + g.mixed(alnum+"_-", 43)
	case "pem_rsa":
		return g.pem("RSA ", "MIIEpAIBAAKCAQEA", 12)
	case "pem_ec":
		return g.pem("EC ", "MHcCAQEEI", 3)
	}
	return ""
}

func (g *generator) pem(label, head string, lines int) string {
	out := "-----BEGIN " + label + "PRIVATE" + " KEY-----\n" + head + g.mixed(b64Dig, 64-len(head)) + "\n"
	for range lines - 2 {
		out += g.mixed(b64Dig, 64) + "\n"
	}
	return out + g.mixed(b64Dig, 43) + "=\n-----END " + label + "PRIVATE" + " KEY-----"
}

// base62 writes n in six characters, as GitHub's tokens end.
func base62(n uint32) string {
	b := []byte("000000")
	for i := len(b) - 1; n > 0; i-- {
		b[i] = (digits + upper + lower)[n%62]
		n /= 62
	}
	return string(b)
}

// number reads the length in the name of a kind.
func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic("kind of value: " + err.Error())
	}
	return n
}
