package secretscan

import "strings"

// Rule ids of our own rules. They are stable: policies allow by them.
const (
	ruleURL      = "memsvc-url-credentials"
	rulePassword = "memsvc-password"
	ruleSecret   = "memsvc-secret-assignment"
	ruleMemsvc   = "memsvc-token"
	ruleInvite   = "memsvc-invitation"
	ruleHeader   = "memsvc-authorization-header"
	rulePEM      = "memsvc-private-key"
	ruleVendor   = "memsvc-service-token"
	ruleFactor   = "memsvc-second-factor"
	ruleCookie   = "memsvc-session-cookie"
)

// RuleInfo describes one of the guard's own rules.
type RuleInfo struct {
	// ID is what findings and policies name.
	ID string
	// Description says what the rule finds.
	Description string
}

// OwnRules lists the rules that this package adds to gitleaks's, in a fixed order.
func OwnRules() []RuleInfo {
	return []RuleInfo{
		{ruleURL, "Credentials inside a URL or connection string"},
		{rulePassword, "A password in an assignment, a command, a table or a sentence"},
		{ruleSecret, "A random-looking value given to something called a secret, token, key or credential"},
		{ruleMemsvc, "A token of a memsvc hub"},
		{ruleInvite, "An invitation code of a memsvc hub, which holds a token"},
		{ruleHeader, "Credentials of an HTTP Authorization header"},
		{rulePEM, "A private key"},
		{ruleVendor, "A token of a service, known by its form"},
		{ruleFactor, "The seed of one-time codes, or a recovery code"},
		{ruleCookie, "The cookie of a session"},
	}
}

func ownDescription(id string) string {
	for _, r := range OwnRules() {
		if r.ID == id {
			return r.Description
		}
	}
	return ""
}

const (
	// maxOwnToken bounds a token that our own rules read, in bytes.
	maxOwnToken = 4096
	// maxProbes bounds how often our own rules look in one text. A memory has a few dozen places to look at; a text
	// with more than this is made to be slow, and refused.
	maxProbes = 20_000
)

// errTooDense ends the scan of a text with more than maxProbes places to look at.
type errTooDense struct{}

// probe counts a look that costs more than a few comparisons.
func (p *pass) probe() {
	if p.probes++; p.probes > maxProbes {
		panic(errTooDense{})
	}
}

// own runs our rules for a keyword that stands at s[start:end] of the form at hand.
func (p *pass) own(kind ownKind, start, end int) {
	p.probe()
	if kind&ownURL != 0 {
		p.ownURLs(start, end)
	}
	if kind&ownMemsvc != 0 {
		p.ownTokens(start, end)
	}
	if kind&ownPEM != 0 {
		p.ownKeys(end)
	}
	if kind&ownVendor != 0 {
		p.ownVendors(start, end)
	}
	if p.joined {
		return // a cut word is only safe to judge by its own form
	}
	if kind&ownHeader != 0 {
		p.ownHeaders(start, end)
	}
	if kind&ownCLI != 0 {
		p.ownCommands(start, end)
	}
	if kind&ownConfig != 0 {
		p.ownConfigs(start, end)
	}
	if kind&ownSection != 0 {
		p.sections(start, end)
	}
	if kind&ownLogin != 0 {
		p.logins(start, end)
	}
	if kind&ownFactor != 0 {
		p.factors(start, end)
	}
	if kind&ownCookie != 0 {
		p.cookies(start, end)
	}
	if kind&ownPrompt != 0 {
		p.prompted(end)
	}
	switch {
	case kind&ownPassword != 0:
		p.ownAssignments(start, end, true)
	case kind&ownSecret != 0:
		p.ownAssignments(start, end, false)
	}
}

func (p *pass) addOwn(rule, value string, at, rank int) {
	p.add(raw{rule: rule, description: ownDescription(rule), value: value, at: at, rank: rank})
}

// minInvite is the shortest rest of an invitation that is taken for one, in bytes: whole ones have more than 100, and
// what is cut off may still hold the token.
const minInvite = 24

// ownTokens finds tokens of this service, "msv_" and at least 16 random characters, and invitations, "msvi_" and more.
func (p *pass) ownTokens(start, end int) {
	s := p.v.s
	if start > 0 && isAlnum(s[start-1]) {
		return
	}
	to := end
	for to < len(s) && to < end+maxOwnToken && (isAlnum(s[to]) || s[to] == '_' || s[to] == '-') {
		to++
	}
	body := strings.TrimRight(s[end:to], "_-")
	rule, least := ruleMemsvc, 16
	if end-start == len("msvi_") {
		rule, least = ruleInvite, minInvite
	}
	if len(body) >= least && charStats(body).kinds() >= 2 && entropy(body) > 3 && !wordish(body) {
		p.addOwn(rule, s[start:end+len(body)], start, rankKnown)
	}
}

// ownHeaders finds "Bearer …", "Basic …" and "Authorization: SCHEME …" with a random-looking value, and the response of
// Digest, from which a password can be guessed.
func (p *pass) ownHeaders(start, end int) {
	s := p.v.s
	if start > 0 && isAlnum(s[start-1]) {
		return
	}
	switch word := s[start:end]; {
	case strings.EqualFold(word, "authorization"):
		p.scheme(end)
		return
	case strings.EqualFold(word, "digest username"):
		line := s[end:lineStop(s, end)]
		if at := strings.Index(line, "response="); at >= 0 {
			if value, from, _ := readValue(s, end+at+len("response=")); isHex(value) && len(value) >= 32 && !placeholder(value) {
				p.addOwn(ruleHeader, value, from, rankKnown)
			}
		}
		return
	}
	at := end
	for at < len(s) && at < end+4 && strings.IndexByte(" :`*\"'", s[at]) >= 0 {
		at++
	}
	if at == end {
		return
	}
	to := at
	for to < len(s) && to < end+maxOwnToken && (isAlnum(s[to]) || strings.IndexByte("._~+/=-", s[to]) >= 0) {
		to++
	}
	value := strings.TrimRight(s[at:to], ".-")
	if len(value) < 16 {
		return
	}
	if strings.EqualFold(s[start:end], "basic") {
		p.basic(value, at)
		return
	}
	if random(value) {
		p.addOwn(ruleHeader, value, at, rankKnown)
	}
}

// scheme reads an Authorization header with any scheme that has one value.
func (p *pass) scheme(i int) {
	s := p.v.s
	for limit := i + 4; i < len(s) && i < limit && strings.IndexByte(" :\"'=", s[i]) >= 0; i++ {
	}
	from := i
	for i < len(s) && isLetter(s[i]) {
		i++
	}
	if i == from || byteAt(s, i) != ' ' || strings.EqualFold(s[from:i], "basic") || strings.EqualFold(s[from:i], "digest") {
		return
	}
	from = i + 1
	for i = from; i < len(s) && i < from+maxOwnToken && (isAlnum(s[i]) || strings.IndexByte("._~+/=-", s[i]) >= 0); {
		i++
	}
	value := strings.TrimRight(s[from:i], ".-")
	if len(value) >= 16 && (random(value) || isHex(value) && len(value) >= 32 && charStats(value).kinds() > 1) && !strings.Contains(strings.TrimRight(value, "="), "=") {
		p.addOwn(ruleHeader, value, from, rankKnown)
	}
}

// basic reports a value that is "user:password" in base64.
func (p *pass) basic(value string, at int) {
	text, ok := decodeBase64(strings.TrimRight(value, "="))
	if _, pass, pair := strings.Cut(text, ":"); ok && pair && pass != "" && !placeholder(pass) {
		p.addOwn(ruleHeader, value, at, rankKnown)
	}
}

// minKeyBody is how long an unbroken run of base64 must follow a private key's first line; shorter ones are a
// documented shape, or the prose about it.
const minKeyBody = 32

// ownKeys finds private keys, also indented, quoted, with "\n" for newlines, cut off or on one line.
func (p *pass) ownKeys(end int) {
	s := p.v.s
	window := max(0, end-60)
	begin := strings.LastIndex(s[window:end], "BEGIN")
	if begin < 0 {
		return
	}
	at := window + begin
	for at > 0 && s[at-1] == '-' {
		at--
	}
	run := 0
	for i, limit := end, min(len(s), end+1024); i < limit; i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < limit && (s[i+1] == 'n' || s[i+1] == 'r'):
			i++
			run = 0
		case isAlnum(c) || c == '+' || c == '/' || c == '=':
			if run++; run == minKeyBody {
				body := s[i+1-run : i+1]
				if charStats(body).kinds() >= 2 && entropy(body) > 3.5 {
					// It is told by where it begins; what is looked at here is not all of it.
					p.add(raw{rule: rulePEM, description: ownDescription(rulePEM), value: body, at: at, to: i + 1, rank: rankKnown})
				}
				return
			}
		default:
			if strings.HasPrefix(s[i:], "-----END") {
				return
			}
			run = 0
		}
	}
}
