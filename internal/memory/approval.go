package memory

import (
	"bytes"
	"unicode/utf8"
)

// approvalStems are the beginnings of words that every phrase below holds one of, by
// their first byte in either case. Text without them, nearly all text, is done after
// one pass.
var approvalStems = [256][]string{
	'p': {"permission", "preapprov"}, 'P': {"permission", "preapprov"},
	'a': {"allow", "approv", "auto-accept", "autoapprov", "authori"}, 'A': {"allow", "approv", "auto-accept", "autoapprov", "authori"},
	'b': {"bypassperm"}, 'B': {"bypassperm"},
	'c': {"confirm"}, 'C': {"confirm"},
	'w': {"without asking"}, 'W': {"without asking"},
	'y': {"yolo"}, 'Y': {"yolo"},
	0xe5: {"允许"},
	0xe6: {"批准", "授权", "有权", "权限"},
	0xe7: {"确认"},
	0xe8: {"跳过"},
}

// approvalPhrases is what memories say that pass off as consent: switches of coding
// clients that turn their questions off, and sentences that grant in advance. The
// list is short on purpose: it flags, for a person to look, and refuses nothing.
var approvalPhrases = [...]string{
	"--dangerously-skip-permissions",
	"dangerously_skip_permissions",
	"skip permission",
	"skip all permission",
	"bypasspermissions",
	"bypass permission",
	"permissions.allow",
	"\"permissions\": {",
	"--yolo",
	"yolo mode",
	"auto-accept",
	"autoapprove",
	"auto-approve",
	"always approve",
	"always allow",
	"approve all",
	"pre-approved",
	"preapproved",
	"--ask-for-approval never",
	"approval_policy = \"never\"",
	"you are allowed to run",
	"you are allowed to execute",
	"you have permission to",
	"you are authorized to",
	"you are authorised to",
	"no need to ask for permission",
	"no confirmation needed",
	"no confirmation is needed",
	"without asking for permission",
	"without asking for confirmation",
	"without asking the user",
	"without confirmation",
	"do not ask for confirmation",
	"don't ask for confirmation",
	"允许你执行",
	"允许你运行",
	"你有权",
	"已授权你",
	"无需确认",
	"不需要确认",
	"不用确认",
	"无需批准",
	"自动批准",
	"跳过权限",
	"跳过确认",
}

// GrantsApproval returns the first line, counted from 1, with a phrase that grants
// permissions or tells an agent to act without asking, or 0 (ruling 13.20).
func GrantsApproval(content []byte) int {
	if !hasApprovalStem(content) {
		return 0
	}
	lower := make([]byte, len(content))
	for i, c := range content {
		lower[i] = lowerASCII(c)
	}
	first := -1
	for _, p := range approvalPhrases {
		if i := bytes.Index(lower, []byte(p)); i >= 0 && (first < 0 || i < first) {
			first = i
		}
	}
	if first < 0 {
		return 0
	}
	return lineAt(content, first)
}

func hasApprovalStem(content []byte) bool {
	for i, c := range content {
		stems := approvalStems[c]
		if len(stems) == 0 || c < utf8.RuneSelf && i > 0 && isASCIILetter(content[i-1]) {
			continue
		}
		for _, stem := range stems {
			if hasPrefixFold(content[i:], stem) {
				return true
			}
		}
	}
	return false
}

// hasPrefixFold reports whether b begins with prefix, which is in lower case,
// whatever the case of b's ASCII letters.
func hasPrefixFold(b []byte, prefix string) bool {
	if len(b) < len(prefix) {
		return false
	}
	for i := 1; i < len(prefix); i++ { // the caller has looked at the first byte
		if lowerASCII(b[i]) != prefix[i] {
			return false
		}
	}
	return true
}

func lowerASCII(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | 0x20
	}
	return c
}
