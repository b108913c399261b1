package secretscan

import "strings"

// ownKind says which of our own rules looks at a keyword. It is a set of bits: "password" concerns two.
type ownKind uint16

const (
	ownPassword ownKind = 1 << iota // a password may follow
	ownSecret                       // a random-looking secret may follow
	ownURL                          // credentials may stand before the host
	ownMemsvc                       // a token of this service, or an invitation that holds one
	ownHeader                       // an Authorization value may follow
	ownPEM                          // a private key may follow
	ownCLI                          // a command that takes a password as an argument
	ownConfig                       // a statement or a line of a configuration that takes a password without naming one
	ownVendor                       // a token of a service
	ownSection                      // a heading or a label, with secrets below or behind it
	ownLogin                        // a sentence that tells how to come in
	ownFactor                       // the seed of one-time codes may follow
	ownCookie                       // the cookie of a session may follow
	ownPrompt                       // what a script types after a prompt
)

// ownWords lists the keywords of our own rules, lower-case. Each costs a look wherever it stands, so none is a common
// word of prose without a sign beside it.
func ownWords() map[ownKind][]string {
	return map[ownKind][]string{
		ownPassword: append([]string{"password", "passwd", "passwort", "kennwort", "pwd", "pswd", "pasword", "p/w", "passphrase", "passcode", "_pass", "-pass ",
			"keypass", "storepass", "psk=", "psk:", "mdp:", "mdp :", "mdp=", "pw is ",
			"wi-fi key", "wifi key", "wlan key", "wpa2 key", "wpa key", "pre-shared key", "presharedkey",
			"mot de passe", "contraseña", "senha", "wachtwoord", "ароль", "パスワード", "비밀번호", "密码", "密碼", "口令", "密 码", "密  码", "密　码", "密　　码", "口 令"}, shortWords()...),
		ownSecret: {"secret", "secret key", "token", "api key", "api-key", "api_key", "apikey", "access key", "access-key", "access_key",
			"accesskey", "private_key", "app_key", "signing key", "signing_key", "encryption key", "encryption_key", "master key",
			"credential", "creds", "login", "basic auth", "zugangsdaten", "accountkey", "密钥", "密鑰", "令牌", "秘钥",
			"unseal", "enrolment code", "enrollment code", "activation code", "activation key", "pairing code", "registration code", "setup code", "license key",
			"激活码", "注册码", "授权码"},
		ownURL:    {"://", "@tcp(", ":oracle:"},
		ownMemsvc: {"msv_", "msvi_"},
		ownHeader: {"bearer", "basic", "authorization", "digest username"},
		ownPEM:    {"private key"},
		ownCLI: {"mysql", "mariadb", "sshpass", "redis-cli", "docker login", "podman login", "registry login", "psql", "curl", "ldapsearch", "ldapmodify", "ldapadd",
			"ldapwhoami", "mongosh", "mongodump", "mongorestore", "smbclient", "az login", "sqlplus", "echo ",
			"mosquitto_", //nolint:misspell // a program's name
			"sqlcmd", "ipmitool", "unzip", "lftp", "rpcclient", "net use", "htpasswd", "xfreerdp", "openssl", "http -a ", "https -a "},
		ownConfig: {"identified", "requirepass", "masterauth", "auth-pass", "userlist", "getconnection(", "encode_base64(", "b64encode(", "securestring ", "bcrypt.hash", "encoder.encode(", "hashpw(", "hash_password(", "hashpassword(", " / ", " admin/", " root/", " -p ", " on >", ":5432:", ":5433:", ":6432:", ":*:", "wifi:", `auth":`, `auth" :`, "_auth="},
		ownVendor: vendorWords(),
		ownSection: {"password", "passwort", "passwörter", "密码", "密碼", "口令", "wifi", "wi-fi", "wlan", "ssid", "无线", "無線",
			"credential", "creds", "login", "zugangsdaten", "登录", "登陆", "登錄", "accounts", "account:", "test user", "users:", "账号", "帐号", "账户", "帳號",
			"secrets", "tokens", "api keys", "密钥", "密鑰", "秘钥", "令牌",
			"recovery code", "backup code", "recovery-code", "backup-code", "scratch code", "恢复码", "备用码", "备份码", "恢复代码"},
		ownLogin: {"log in as", "login as", "sign in as", "signed in as", "logged in as", "log in with", "login with", "sign in with", "log in using", "log on as",
			"登录", "登陆", "登錄", "ssh ", "it's now ", "is now ", "now it is ", "binds using ", "binds with ", "bind with ", "authenticates with ", "authenticates using ", "signed with ",
			"opens with ", "opened with ", "unlocks with ", "unlock with ", "decrypts with ", "decrypt with ", "admin", "root"},
		ownFactor: {"otpauth-migration://", "otpauth://", "totp", "2fa", "mfa", "two-factor", "otp key", "otp secret", "otp seed", "authenticator", "oathtool", "app password", "app-specific password", "授权码",
			"二次验证", "两步验证", "动态口令", "双因素", "lpa:1$", "bitlocker"},
		ownCookie: {"cookie:", "cookie ", "sessionid", "sessid", "connect.sid"},
		ownPrompt: {"send \"", "send -- \"", "send '"},
	}
}

// shortWords lists "pass" and "pw" with what makes names of them: a sign, what may stand before one, a cell's border.
func shortWords() []string {
	words := []string{"pw `", "/pass)", "/pw)", ", pass ", ", pw ", " pw ", "pw for ", " pass (", " pw (", "pass use", "pw use", "pw?"}
	for _, w := range []string{"pass", "pw"} {
		for _, next := range []string{"=", ":", " =", " :", "  ", "\t", `"`, "'", "`:", "*", ">"} {
			words = append(words, w+next)
		}
		words = append(words, "| "+w, "|"+w)
	}
	return words
}

// nameOf tells whether a short word for a password, which has a sign, a quote or a cell's border beside it, is a name: a
// word of its own, or glued to what it belongs to. It returns where the name itself begins and ends.
func nameOf(s string, start, end int) (from, to int, ok bool) {
	c := s[end-1]
	switch {
	case s[start] == '|':
		for start++; s[start] == ' '; {
			start++
		}
		return start, end, shortHeading(s, start, end)
	case s[start] == ',': // "user svc, pass value"
		return start + 2, end - 1, listed(s, start+2)
	case s[start] == ' ' && c == '(': // "the db pass (value)"
		return start + 1, end - len(" ("), true
	case s[start] == ' ': // "with pw value"
		return start + 1, end - 1, true
	case strings.HasSuffix(s[start:end], " use"):
		return start, end - len(" use"), start == 0 || !isAlnum(s[start-1])
	case strings.HasSuffix(s[start:end], " for "):
		return start, end - len(" for "), start == 0 || !isAlnum(s[start-1])
	case s[start] == '/': // "(user/pass): admin / value"
		return start + 1, end - 1, pairHead(s[:start+1])
	case s[start] == '-': // "--db-pass value"
		return start + 1, end - 1, isFlag(s, start)
	case s[start] == '_':
		return start, end, !counted(s, start)
	case isLetter(c) || c >= 0x80:
		return start, end, true
	}
	for end--; !isLetter(s[end-1]); {
		end--
	}
	switch c {
	case '"', '\'', '*', '\t', ' ':
		if s[start:end] == "pw is" || s[start:end] == "PW is" {
			end -= len(" is")
			break
		}
		// In code, too, tests pass; a key has its sign.
		next := strings.TrimLeft(s[end:min(len(s), end+16)], "\"'*_ \t")
		if next == "" || next[0] != ':' && next[0] != '=' {
			return start, end, false
		}
	}
	if start > 0 && isAlnum(s[start-1]) {
		return start, end, gluedName(s, start, end)
	}
	return start, end, !counted(s, start)
}

// counted reports words before "pass" that make it a turn: "the second pass=…".
func counted(s string, start int) bool {
	head := strings.ToLower(strings.TrimRight(s[max(0, start-12):start], " -_"))
	word := head[strings.LastIndexAny(head, " \n\t-(`*_\"'")+1:]
	switch word {
	case "first", "second", "third", "next", "last", "final", "each", "one", "two", "single", "multi", "this", "every", "same", "compiler", "render", "low", "high", "band":
		return true
	}
	return false
}

// gluedName reports whether the letters right before a short word for a password make a name of a password with it, as
// in "dbpass" and "JIRAPASS". Others make another word: "bypass:", "compass=".
func gluedName(s string, start, end int) bool {
	from := start
	for from > 0 && start-from < 24 && isAlnum(s[from-1]) {
		from--
	}
	head := s[from:start]
	if isUpperName(s[from:end]) {
		// Variables of an environment are written like this; the words that end so are few.
		switch head {
		case "BY", "COM", "ENCOM", "OVER", "UNDER", "SUR", "TRES", "SUB", "BAND", "LOW", "HIGH", "MULTI", "SINGLE", "FIRST", "SECOND", "RENDER", "NO":
			return false
		}
		return true
	}
	switch strings.ToLower(head) {
	case "db", "database", "sql", "mysql", "pg", "pgsql", "postgres", "ora", "oracle", "mssql", "mongo", "redis", "smtp", "mail", "imap",
		"pop", "pop3", "ftp", "sftp", "ssh", "ldap", "bind", "http", "proxy", "rpc", "mqtt", "amqp", "rabbit", "admin", "root", "user", "sudo",
		"wifi", "vpn", "keystore", "truststore", "store", "ssl", "tls", "app", "svc", "svn", "git", "api", "web", "login", "my", "auth", "basic",
		"wpa", "master", "default", "old", "new", "test", "qa", "prod", "staging":
		return true
	}
	return false
}

// shortHeading reports whether "pass" or "pw" at s[start:end] is a whole cell of a table's heading that has accounts
// beside it: tests pass, too.
func shortHeading(s string, start, end int) bool {
	for end < len(s) && s[end] == ' ' {
		end++
	}
	if end == len(s) || s[end] != '|' && s[end] != '\n' {
		return false
	}
	head := strings.ToLower(s[lineStart(s, start):lineStop(s, end)])
	return containsAny(head, []string{"user", "login", "account", "host", "konto", "benutzer", "e-mail", "email", "server", "device"})
}
