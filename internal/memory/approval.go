package memory

import "bytes"

// approvalStems are the word stems that every phrase below holds one of. Text
// without them, nearly all text, is done after these few searches.
var approvalStems = [...]string{"permission", "allow", "approv", "confirm", "without asking", "auto-accept", "yolo", "authori", "允许", "批准", "确认", "授权", "有权", "跳过"}

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

// grantsApproval returns the first line with a phrase that grants permissions, or 0.
func grantsApproval(content []byte) int {
	var small [4096]byte
	lower := small[:0]
	if len(content) > len(small) {
		lower = make([]byte, 0, len(content))
	}
	lower = lower[:len(content)]
	for i, c := range content {
		if 'A' <= c && c <= 'Z' {
			c |= 0x20
		}
		lower[i] = c
	}
	stem := false
	for _, s := range approvalStems {
		if bytes.Contains(lower, []byte(s)) {
			stem = true
			break
		}
	}
	if !stem {
		return 0
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
