package secretscan_test

import (
	"strings"
	"testing"

	"github.com/memsvc/memsvc/internal/secretscan"
)

// TestPlaceholdersAreHarmless puts what stands for a secret wherever the guard looks for one.
func TestPlaceholdersAreHarmless(t *testing.T) {
	places := map[string]string{
		"assignment":      "password: %s",
		"full-width sign": "密码：%s",
		"list":            "## Credentials\n\n- Grafana: %s\n",
		"list of values":  "## Passwords\n\n- %s\n",
		"list in Chinese": "## 账号密码\n\n- 禅道：%s\n",
		"pair in a list":  "## Logins\n\n- ERP: mmeyer / %s\n",
		"arrow":           "Test accounts:\nqa01 -> %s\n",
		"fat arrow":       "Credentials: user => %s",
		"wifi":            "## Wifi\n\nAcme-Guest / %s\n",
		"wifi label":      "Office wifi: Acme-Guest - %s",
		"wifi QR":         "WIFI:S:Acme;T:WPA;P:%s;;",
		"table":           "| system | password |\n|---|---|\n| ERP | %s |",
		"table below":     "## Passwords\n\n| system | value |\n|---|---|\n| ERP | %s |",
		"log in":          "Log in as admin (%s).",
		"log in with":     "Log in with admin and %s.",
		"Chinese login":   "用 admin（%s）登录后台。",
		"ssh":             "ssh root@build3 with pw %s",
		"admin and":       "Use admin and %s there.",
		"changed":         "I reset the admin account, it's now %s",
		"answer":          "> sam: whats the pw?\n> ria: %s",
		"expect":          "expect \"password:\"\nsend \"%s\\r\"",
		"net use":         `net use Z: \\nas\b /user:ACME\b %s`,
		"openssl":         "openssl enc -d -in x -k %s",
		"htpasswd":        "htpasswd -nb anna %s",
		"httpie":          "http -a ops:%s GET x",
		"literal":         "kubectl create secret generic x --from-literal=password=%s",
		"cookie":          "Cookie: session=%s",
		"header":          "Authorization: Token %s",
		"digest":          `Authorization: Digest username="x", response="%s"`,
		"unseal":          "Unseal Key 1: %s",
		"seed":            "TOTP secret: %s",
		"otpauth":         "otpauth://totp/Acme?secret=%s",
		"app password":    "smtp 授权码 %s",
		"codes":           "Recovery codes:\n\n%s\n%s\n%s\n",
		"activation":      "Activation key: %s",
		"userlist":        `userlist.txt: "app" "%s"`,
	}
	holders := []string{
		"<password>", "<your-password>", "$PASSWORD", "${VAR}", "$(pass show x)", "xxxx", "xxxxxxxxxxxx", "changeme", "********", "••••••••", "...",
		"{{ .Values.x }}", "{{ vault_db_password2 }}", "op://vault/item", "op://Engineering/db2/password", "env.X", "env.LEDGER_DB_PW2", "process.env.DB_PW2",
		"stored in 1Password under db3", "ask Ria2 for the password", "see vault", "see 1Password", "vault:kv/data/db2#password", "kv/prod/mysql8",
		"secrets/db2", "%DB_PW2%", "your-password-here", "none", "n/a", "TBD", "SSO", "TODO", "见 1Password", "问运维要", "<找李雷>",
	}
	s := secretscan.New(secretscan.Options{})
	for name, place := range places {
		for _, holder := range holders {
			text := strings.ReplaceAll(place, "%s", holder)
			for _, content := range []string{text + "\n", strings.ReplaceAll(text, "\n", "\r\n") + "\r\n", "> " + strings.ReplaceAll(text, "\n", "\n> ") + "\n"} {
				fs, err := s.Scan("reference_x.md", []byte(content))
				if err != nil || len(fs) > 0 {
					t.Errorf("%s: %q: %v %v", name, content, brief(fs), err)
				}
			}
		}
	}
}

// TestSecretsWherePlaceholdersStand keeps the places of TestPlaceholdersAreHarmless honest: with a value in them, each
// is refused.
func TestSecretsWherePlaceholdersStand(t *testing.T) {
	s := secretscan.New(secretscan.Options{})
	for _, text := range []string{
		"## Logins\n\n- ERP: mmeyer / Tr4lala!9x\n", "## Passwords\n\n- Tr4lala!9x\n", "Test accounts:\nqa01 -> Tr4lala!9x\n",
		"Office wifi: Acme-Guest - Tr4lala!9x", "WIFI:S:Acme;T:WPA;P:Tr4lala!9x;;", "Log in as admin (Tr4lala!9x).", "用 admin（Tr4lala!9x）登录后台。",
		"ssh root@build3 with pw Tr4lala!9x", "Use admin and Tr4lala!9x there.", "I reset the admin account, it's now Tr4lala!9x",
		"> sam: whats the pw?\n> ria: Tr4lala!9x", "expect \"password:\"\nsend \"Tr4lala!9x\\r\"", `net use Z: \\nas\b /user:ACME\b Tr4lala!9x`,
		"openssl enc -d -in x -k Tr4lala!9x", "htpasswd -nb anna Tr4lala!9x", "http -a ops:Tr4lala!9x GET x", `userlist.txt: "app" "Tr4lala!9x"`,
	} {
		for _, content := range []string{text + "\n", strings.ReplaceAll(text, "\n", "\r\n") + "\r\n", "> " + strings.ReplaceAll(text, "\n", "\n> ") + "\n"} {
			if fs, err := s.Scan("reference_x.md", []byte(content)); err != nil || len(fs) == 0 {
				t.Errorf("%q passes: %v", content, err)
			}
		}
	}
}
