package secretscan

import "strings"

// commandFlags says which flags of a command take a password, and which user and password.
type commandFlags struct {
	command  string // lower-case; it may be only how the command begins
	password string // the flag of a password; empty for none
	glued    bool   // its value stands right behind it: with a blank between, the command asks
	pair     string // letters of the flags of "user:password"; empty for none
}

func commands() []commandFlags {
	return []commandFlags{
		{"mysql", "-p", true, ""}, {"mariadb", "-p", true, ""}, {"sshpass", "-p", false, ""}, {"docker", "-p", false, ""}, {"podman", "-p", false, ""},
		{"registry", "-p", false, ""}, {"mongo", "-p", false, ""}, {"az login", "-p", false, ""},
		{"redis-cli", "-a", false, ""}, {"ldap", "-w", false, ""}, {"curl", "", false, "uU"}, {"smbclient", "", false, "U"},
		{"rpcclient", "", false, "U"}, {"lftp", "", false, "u"}, {"sqlcmd", "-P", false, ""}, {"ipmitool", "-P", false, ""},
		{"mosquitto", "-P", false, ""}, //nolint:misspell // a program's name
		{"unzip", "-P", false, ""}, {"openssl", "-k ", false, ""},
	}
}

// ownCommands finds passwords as arguments of well-known commands: "-p'…'", "-pVALUE", "-p VALUE", "-a VALUE", "-w",
// "-u user:password", "--user user:password", "sqlplus user/password@…", and what is piped into one.
func (p *pass) ownCommands(start, end int) {
	s := p.v.s
	if start > 0 && (isAlnum(s[start-1]) || s[start-1] == '-' || s[start-1] == '/' && start > 1 && s[start-2] == '/') {
		return
	}
	switch s[start] | 0x20 {
	case 'e':
		p.piped(end)
		return
	case 's':
		if strings.EqualFold(s[start:end], "sqlplus") {
			for end < len(s) && s[end] == ' ' {
				end++
			}
			p.slashPair(end)
			return
		}
	}
	line := s[end:lineStop(s, end)]
	word := strings.ToLower(s[start:end])
	switch word {
	case "net use":
		p.netUse(line, end)
		return
	case "http -a ", "https -a ":
		value, from, _ := readValue(s, end)
		if sep := strings.IndexByte(value, ':'); sep > 0 && realPassword(value[sep+1:], linkSign, true) {
			p.addOwn(rulePassword, value[sep+1:], from+sep+1, rankKnown)
		}
		return
	case "htpasswd":
		if strings.Contains(line, " -b") || strings.Contains(line, "b ") && strings.HasPrefix(line, " -") {
			n := 2
			if flags, _, _ := strings.Cut(line[strings.IndexByte(line, '-'):], " "); strings.Contains(flags, "n") {
				n = 1 // no file
			}
			p.argument(line, end, n)
		}
		return
	case "xfreerdp":
		if at := strings.Index(line, " /p:"); at >= 0 {
			p.argument(line[at+len(" /p:")-1:], end+at+len(" /p:")-1, 0)
		}
		return
	}
	if strings.IndexByte(line, '-') < 0 {
		return
	}
	for _, c := range commands() {
		if strings.HasPrefix(word, c.command) {
			p.flags(c, line, end)
			return
		}
	}
}

// netUse judges the password of Windows's "net user NAME value" and "net use X: \\\\host\\share value /user:NAME", where
// the value may stand last, too. The line goes on behind "net use".
func (p *pass) netUse(line string, base int) {
	if strings.HasPrefix(line, "r ") {
		p.argument(line[1:], base+1, 1)
		return
	}
	share := strings.Index(line, `\\`)
	if share < 0 || !strings.Contains(strings.ToLower(line), "/user:") {
		return
	}
	for i := share; i < len(line); {
		stop := i
		for stop < len(line) && line[stop] != ' ' {
			stop++
		}
		if word := line[i:stop]; i > share && word != "" && word[0] != '/' {
			if value, from, _ := readValue(p.v.s, base+i); realPassword(value, linkSpace, true) && charStats(value).kinds() >= 2 {
				p.addOwn(rulePassword, value, from, rankKnown)
				return
			}
		}
		i = stop + 1
	}
}

// prompted finds what a script of expect sends after it has seen the prompt for a password; the text begins at i.
func (p *pass) prompted(i int) {
	s := p.v.s
	head := strings.ToLower(s[max(0, i-maxSQLHead):i])
	if !containsAny(head, []string{"assword", "assphrase", "assphase", "passcode", "密码", "口令"}) {
		return
	}
	line := s[i:lineStop(s, i)]
	end := strings.IndexAny(line, "\\\"'")
	if end <= 0 || line[end] == '\\' && end+1 < len(line) && line[end+1] != 'r' && line[end+1] != 'n' {
		return
	}
	if value := line[:end]; realPassword(value, linkSpace, true) && charStats(value).kinds() >= 2 {
		p.addOwn(rulePassword, value, i, rankKnown)
	}
}

// argument judges a command's argument number n, flags not counted, in line, which begins at offset base.
func (p *pass) argument(line string, base, n int) {
	for i := 1; i < len(line); {
		stop := i
		for stop < len(line) && line[stop] != ' ' {
			stop++
		}
		if word := line[i:stop]; word != "" && word[0] != '-' {
			if n == 0 {
				if value, from, quoted := readValue(p.v.s, base+i); realPassword(value, linkSpace, quoted) && charStats(value).kinds() >= 2 {
					p.addOwn(rulePassword, value, from, rankKnown)
				}
				return
			}
			n--
		}
		i = stop + 1
	}
}

// flags judges the values of a command's flags in line, which begins at offset base.
func (p *pass) flags(c commandFlags, line string, base int) {
	s := p.v.s
	for i := 1; i+3 < len(line); i++ {
		if line[i] != '-' || line[i-1] != ' ' {
			continue
		}
		p.probe()
		if c.password != "" && strings.HasPrefix(line[i:], c.password) {
			at := base + i + len(c.password)
			if c.glued && s[at] == ' ' {
				continue // the command asks
			}
			if value, from, quoted := readValue(s, at); realPassword(value, linkSpace, quoted) && from < base+len(line) {
				p.addOwn(rulePassword, value, from, rankKnown)
			}
		}
		if c.pair != "" {
			n := pairFlag(line[i:], c.pair)
			if n == 0 {
				continue
			}
			value, from, _ := readValue(s, base+i+n)
			if sep := strings.IndexAny(value, ":%,"); sep > 0 && realPassword(value[sep+1:], linkSign, true) && from < base+len(line) {
				p.addOwn(rulePassword, value[sep+1:], from+sep+1, rankKnown)
			}
		}
	}
}

// pairFlag returns the length of the flag for user and password that s begins with: "-u", "--user ", "--proxy-user ",
// or the last one in a cluster as "-su "; 0 for other flags.
func pairFlag(s, letters string) int {
	for _, f := range [...]string{"--user ", "--user=", "--proxy-user ", "--proxy-user="} {
		if strings.HasPrefix(s, f) {
			return len(f)
		}
	}
	if strings.IndexByte(letters, s[1]) >= 0 {
		return 2
	}
	n := 1
	for n < len(s) && n < 8 && isLetter(s[n]) {
		n++
	}
	if n > 2 && n < len(s) && s[n] == ' ' && strings.IndexByte(letters, s[n-1]) >= 0 {
		return n
	}
	return 0
}

// piped finds what "echo", which ends at i, hands to a command that reads a password.
func (p *pass) piped(i int) {
	s := p.v.s
	line := s[i:lineStop(s, i)]
	text, to, ok := strings.Cut(line, "|") // to is the rest of the pipe
	if end := strings.IndexAny(to, ";|&"); end >= 0 {
		to = to[:end]
	}
	if !ok || !containsAny(to, []string{"password-stdin", "sudo -S", "chpasswd", "passwd --stdin", "kinit", "cryptsetup", "smbpasswd", "pinentry", "passphrase-fd"}) {
		return
	}
	at := i
	for strings.HasPrefix(text, "-n ") || strings.HasPrefix(text, "-e ") {
		at, text = at+3, text[3:]
	}
	value, from, quoted := readValue(s, at)
	if strings.Contains(to, "chpasswd") {
		if _, pass, ok := strings.Cut(value, ":"); ok {
			from += len(value) - len(pass)
			value = pass
		}
	}
	if realPassword(value, linkSpace, quoted) {
		p.addOwn(rulePassword, value, from, rankKnown)
	}
}
