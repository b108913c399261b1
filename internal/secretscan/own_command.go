package secretscan

import "strings"

// ownCommands finds passwords as arguments of well-known commands: "-p'…'", "-pVALUE", "-p VALUE", "-a VALUE", "-w",
// "-u user:password".
func (p *pass) ownCommands(start, end int) {
	s := p.v.s
	if start > 0 && (isAlnum(s[start-1]) || s[start-1] == '-' || s[start-1] == '/' && start > 1 && s[start-2] == '/') {
		return
	}
	line := s[end:lineStop(s, end)]
	command := strings.ToLower(s[start:end])
	for i := 0; i+3 < len(line); i++ {
		if line[i] != '-' || i == 0 || line[i-1] != ' ' {
			continue
		}
		c, at := line[i+1], end+i+2
		switch {
		case c == 'p' && command != "curl" && command != "psql" && command != "redis-cli", c == 'a' && command == "redis-cli", c == 'w' && command == "ldapsearch":
			if s[at] == ' ' && strings.HasPrefix(command, "mysql") {
				continue // mysql -p asks
			}
			if value, from, quoted := readValue(s, at); realPassword(value, linkSpace, quoted) && from < end+len(line) {
				p.addOwn(rulePassword, value, from, rankKnown)
			}
		case (c == 'u' || c == 'U') && (command == "curl" || command == "smbclient"):
			value, from, _ := readValue(s, at)
			sep := strings.IndexAny(value, ":%")
			if sep > 0 && realPassword(value[sep+1:], linkSign, true) {
				p.addOwn(rulePassword, value[sep+1:], from+sep+1, rankKnown)
			}
		}
	}
}
