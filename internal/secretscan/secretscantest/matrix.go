package secretscantest

import "strings"

// Matrix returns every kind of token in every form, each in a plain sentence: what the corpus cannot list by hand.
// Forms that need a name beside the value are left to the corpus.
func Matrix() []Planted {
	kinds := []string{"aws_key", "github_pat", "gitlab_pat", "slack_bot", "stripe", "anthropic", "openai", "gcp", "npm", "pypi", "jwt",
		"sendgrid", "digitalocean", "shopify", "huggingface", "vault", "databricks", "age", "msv"}
	forms := []string{"plain", "zwsp", "zwj", "zwnbsp", "wj", "shy", "vs", "fullwidth", "math", "entity", "split", "splitquote", "splitlist",
		"splitconcat", "splitbackslash", "split3", "b64", "b64raw", "b64url", "b64utf16", "hex", "hexupper", "hexescape", "uescape", "pctall",
		"b64 b64", "b64 hex", "hex b64", "pctall b64", "b64 pctall", "zwsp b64", "b64 zwsp", "fullwidth zwsp"}
	frames := []string{"We still use %s for the nightly job.\n", "- `%s`\n", "| bot | %s | platform |\n", "**%s**\n", "> see %s\n", "---\nname: x\ndescription: %s\n---\nText.\n"}
	var out []Planted
	for _, kind := range kinds {
		for i, form := range forms {
			id := "matrix " + kind + " " + form
			g := newGenerator(id)
			written := g.value(kind)
			if form != "plain" {
				for _, f := range strings.Fields(form) {
					written = g.form(f, written)
				}
			}
			frame := frames[(i+len(kind))%len(frames)]
			if strings.HasPrefix(form, "split") {
				frame = "We still use\n%s\nfor the nightly job.\n" // a cut word ends its line
			}
			before, _, _ := strings.Cut(frame, "%s")
			out = append(out, Planted{ID: id, Path: "project_job.md", Content: strings.Replace(frame, "%s", written, 1),
				Secret: g.secret, Written: written, Line: 1 + strings.Count(before, "\n")})
		}
	}
	return out
}
