package secretscan

import "strings"

// fillers are words that stand where a secret would: placeholders, what values are called, algorithms, states. A value
// that is hardly more than such words is no secret. Longer ones first, so that "password" goes before "pass".
func fillers() []string {
	return []string{
		"placeholder", "authentication", "credentials", "credential", "passphrase", "undefined", "sensitive", "generated",
		"encrypted", "changethis", "replaceme", "optional", "required", "redacted", "changeme", "password", "something",
		"whatever", "username", "passwort", "example", "default", "removed", "omitted", "replace", "passwd", "fake", "secret", "string",
		"sample", "hidden", "masked", "foobar", "insert", "change", "dummy", "token", "value", "empty", "admin", "stored", "vault",
		"apikey", "pbkdf2", "argon2id", "argon2", "bcrypt", "scrypt", "sha256", "sha384", "sha512", "sha1", "aes256", "aes128", "ed25519", "hmac", "base64", "rs256", "hs256", "es256",
		"oauth2", "utf8", "bearer", "basic", "your", "here", "this", "test", "demo", "user", "pass", "auth", "none", "null", "true", "false",
		"todo", "tbd", "mock", "some", "real", "long", "very", "prod", "text", "guest", "root", "postgres", "redis", "mysql", "qwerty",
		"enter", "from", "api", "key", "the", "foo", "bar", "baz", "goes", "12345678", "123456", "1234", "123",
	}
}

// placeholder reports whether a value only stands for one.
func placeholder(v string) bool {
	if placeholderMark(v) {
		return true
	}
	low := strings.ToLower(v)
	if technical(low) {
		return true
	}
	for _, w := range fillers() {
		low = strings.ReplaceAll(low, w, " ")
	}
	gone := len(v) - len(low) + strings.Count(low, " ")
	st := charStats(low)
	// What is left besides the filler words. Short ones count only where they stand alone: "me" is a part of many names.
	rest := st.letters() + st.digits
	for _, w := range strings.FieldsFunc(low, func(r rune) bool { return r >= 0x80 || !isAlnum(byte(r)) }) {
		switch w {
		case "my", "me", "in", "to", "is", "db", "v1", "v2", "id":
			rest -= len(w)
			gone += len(w)
		}
	}
	if rest == 0 {
		return true
	}
	if gone >= 3 && rest <= 3 && st.marks-strings.Count(low, " ") <= strings.Count(low, "-")+strings.Count(low, "_")+strings.Count(low, ".") {
		return true
	}
	return repeated(v)
}

// technical reports values whose digits all belong to the name of an algorithm or a protocol: "base64encoded".
func technical(low string) bool {
	had := strings.ContainsAny(low, "0123456789")
	if !had {
		return false
	}
	for _, w := range [...]string{"curve25519", "x25519", "x448", "mlkem768", "kyber768", "secp256k1", "chacha20", "poly1305", "tls1.3", "tls1.2", "aes-256", "aes-128", "rsa-2048", "rsa-4096", "oaep-256",
		"sha-256", "sha-512", "sha3-256", "p-256", "p-384", "http/2", "http/3", "base64", "sha256", "sha512", "sha1", "aes256", "aes128", "argon2", "pbkdf2", "ed25519", "oauth2", "utf8", "rs256", "hs256", "es256", "md5", "x509", "tls1", "ipv4", "ipv6"} {
		low = strings.ReplaceAll(low, w, "")
	}
	return !strings.ContainsAny(low, "0123456789")
}

// placeholderMark reports the typographic forms of a placeholder: <…>, ${…}, $VAR, {{…}}, %VAR%, [..], xxx, ***, "…".
func placeholderMark(v string) bool {
	if v == "" {
		return true
	}
	switch v[0] {
	case '<', '{', '[', '(':
		return true
	case '$':
		if len(v) > 5 && strings.EqualFold(v[:5], "$env:") {
			return true
		}
		end := 1
		for end < len(v) && (isAlnum(v[end]) || v[end] == '_') {
			end++
		}
		name, rest := v[1:end], v[end:]
		// $NAME and $name, $NAME/path, $_POST[…], $obj->field, ${…}, $(…)
		if rest == "" && (name == "" || isUpperName(name) || isLowerName(name)) || rest != "" && strings.IndexByte("[/{(", rest[0]) >= 0 || strings.HasPrefix(rest, "->") {
			return true
		}
	case '%':
		if len(v) > 2 && (v[len(v)-1] == '%' || isLetter(v[1]) && v[2] == '/') {
			return true // %VAR%, and systemd's "%d/name"
		}
	}
	for _, m := range []string{"...", "…", "${", "{{", "$(", "%s", "%v", "%q", "****", "••", "____", "xxxx", "XXXX", "#{"} {
		if strings.Contains(v, m) {
			return true
		}
	}
	return false
}

func isUpperName(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return !(r >= 'A' && r <= 'Z' || r == '_' || r >= '0' && r <= '9') }) < 0
}

func isLowerName(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return !(r >= 'a' && r <= 'z' || r == '_') }) < 0
}

// repeated reports values with hardly any variety, as "aaaa", "abababab" or "--------".
func repeated(v string) bool {
	return len(v) >= 4 && entropy(v) < 1.6
}
