package secretscan

import "strings"

// vendorToken is the shape of a service's tokens as the service prints them, where gitleaks has no rule for it, or one
// that asks for more than the form.
type vendorToken struct {
	prefix string
	least  int // the shortest rest, in characters
}

// vendorTokens lists them: Google OAuth client secrets, Groq, Replicate, Notion, Supabase, Tailscale, Docker Hub, xAI,
// OpenRouter, Figma, Pinecone, LangSmith, Netlify, the webhooks of Stripe and Svix; NVIDIA, Tavily, Jina, Cerebras,
// Langfuse; CircleCI, Buildkite, Bitbucket; Slack's browser tokens; Firebase messaging, Google OAuth refresh and access.
func vendorTokens() []vendorToken {
	return []vendorToken{
		{"GOCSPX-", 24}, {"gsk_", 40}, {"r8_", 32}, {"ntn_", 40}, {"sbp_", 36}, {"tskey-", 24}, {"dckr_pat_", 24}, {"xai-", 60},
		{"sk-or-v1-", 48}, {"figd_", 32}, {"pcsk_", 48}, {"lsv2_", 36}, {"nfp_", 32}, {"whsec_", 28},
		{"nvapi-", 40}, {"tvly-", 28}, {"jina_", 40}, {"csk-", 40}, {"sk-lf-", 32}, {"sb_secret_", 24}, {"CCIPAT_", 36}, {"bkua_", 36}, {"ATBB", 28},
		{"ATCTT3", 40}, {"xoxc-", 40}, {"xoxd-", 40}, {"APA91b", 100}, {"1//0", 36}, {"ya29.", 40},
	}
}

const (
	// telegramMark is how the second half of a Telegram bot's token begins, with its separator.
	telegramMark = ":aa"
	// sasMark is the signature of an Azure shared access signature.
	sasMark = "sig="
	// webhookMark is what Discord's webhook URLs hold before id and token.
	webhookMark = "/api/webhooks/"
	// minTelegram, minSAS and minWebhook are the lengths of what follows the marks: 33 characters, a base64
	// HMAC-SHA-256, and 68 characters, less a few that may be cut off.
	minTelegram, minSAS, minWebhook = 32, 43, 60
	// maxVendor bounds what is read of such a token, in bytes: none of them is longer.
	maxVendor = 256
)

func vendorWords() []string {
	words := []string{telegramMark, sasMark, webhookMark, "x-amz-signature=", "x-goog-signature="}
	for _, t := range vendorTokens() {
		words = append(words, strings.ToLower(t.prefix))
	}
	return words
}

// ownVendors finds tokens of services by their form alone.
func (p *pass) ownVendors(start, end int) {
	s := p.v.s
	switch word := s[start:end]; {
	case s[start] == ':':
		from := start
		for from > 0 && start-from < 12 && isDigit(s[from-1]) {
			from--
		}
		if n := start - from; n < 8 || n > 10 || from > 0 && isAlnum(s[from-1]) && !strings.HasSuffix(s[:from], "bot") {
			return
		}
		p.vendor(from, start+1, minTelegram+len(telegramMark)-1)
	case s[end-1] == '=':
		p.signature(start, end)
	case s[start] == '/':
		id := end
		for id < len(s) && isDigit(s[id]) {
			id++
		}
		if id > end && id < len(s) && s[id] == '/' {
			p.vendor(id+1, id+1, minWebhook)
		}
	case start == 0 || !isAlnum(s[start-1]):
		for _, t := range vendorTokens() {
			if strings.EqualFold(word, t.prefix) {
				p.vendor(start, end, t.least)
			}
		}
	}
}

// vendor reports the token at from whose random part begins at body, if that has at least so many characters.
func (p *pass) vendor(from, body, least int) {
	s := p.v.s
	to := body
	for to < len(s) && to < body+maxVendor && (isAlnum(s[to]) || s[to] == '_' || s[to] == '-') {
		to++
	}
	text := strings.TrimRight(s[body:to], "_-")
	if len(text) < least {
		return
	}
	if st := charStats(text); st.digits > 0 && st.letters() > 0 && entropy(text) > 3 && !wordish(text) && !placeholder(text) {
		p.addOwn(ruleVendor, s[from:body+len(text)], from, rankKnown)
	}
}

// signature reports the signature of a presigned URL, and that of a shared access signature: beside its version and expiry, which no other "sig="
// has, and long enough for a digest.
func (p *pass) signature(start, end int) {
	s := p.v.s
	to := end
	for to < len(s) && to < end+maxOwnToken && (isAlnum(s[to]) || strings.IndexByte("%+/=-_", s[to]) >= 0) {
		to++
	}
	value := s[end:to]
	if end-start > len(sasMark) { // a presigned URL of Amazon or Google
		if value = strings.TrimRight(value, "="); isHex(value) && len(value) >= 64 && !placeholder(value) {
			p.addOwn(ruleVendor, value, end, rankKnown)
		}
		return
	}
	if len(value) < minSAS || start == 0 || strings.IndexByte("&?;", s[start-1]) < 0 {
		return
	}
	from := start
	for from > 0 && start-from < maxOwnToken && !isSpace(s[from-1]) {
		from--
	}
	for to < len(s) && to < end+maxOwnToken && !isSpace(s[to]) {
		to++
	}
	if run := s[from:to]; strings.Contains(run, "se=") && strings.Contains(run, "sv=") && charStats(value).kinds() >= 3 && entropy(value) > 4 {
		p.addOwn(ruleVendor, value, end, rankKnown)
	}
}
