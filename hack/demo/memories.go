package main

// The memories that the two machines begin with: all four types, an index, English
// and Chinese. The `user` ones lie in the personal directory, beside team/.

var laptopTeam = map[string]string{
	"project_release_freeze.md": `---
name: Release freeze
description: No releases of the payment service between 2026-12-18 and 2027-01-04
type: project
---
No releases of the payment service from 2026-12-18 to 2027-01-04.

Why: the bank's test system is closed over the holidays.
Exception: security fixes, when two people of the team agree.
`,
	"feedback_integration_tests.md": `---
name: Integration tests use a real database
description: Tests of the ledger run against PostgreSQL, never against a fake
type: feedback
---
Run the ledger's tests against a real PostgreSQL.

Why: a fake accepted a migration in May that the real one refused.
How to apply: ` + "`make test-db`" + ` starts one on a free port.
`,
	"reference_dashboards.md": `---
name: Dashboards
description: Where the latency of payments is watched
type: reference
---
Latency of payments: Grafana, folder "Payments", dashboard "Checkout".
Errors by bank: the same folder, "Banks".
`,
	"project_结算规则.md": `---
name: 结算规则
description: 每日结算的截止时间和例外
type: project
---
每日结算在北京时间 17:00 截止，之后的交易算入下一个工作日。

例外：季度末最后一天截止时间为 15:00。
`,
	"MEMORY.md": `- [Release freeze](project_release_freeze.md) — no releases 2026-12-18 to 2027-01-04
- [Integration tests](feedback_integration_tests.md) — real PostgreSQL, never a fake
- [Dashboards](reference_dashboards.md) — where latency is watched
- [结算规则](project_结算规则.md) — 每日 17:00 截止，季度末 15:00
`,
}

var laptopPersonal = map[string]string{
	"user_role.md": `---
name: Role
description: Leads the payments team and reads Go faster than Python
type: user
---
Leads payments. Prefers short answers with the command to run first.
`,
	"MEMORY.md": "- [Role](user_role.md) — leads payments, short answers\n",
}

var desktopTeam = map[string]string{
	"reference_bank_contacts.md": `---
name: Bank contacts
description: Which queue reaches the bank's engineers
type: reference
---
The bank's engineers answer tickets in the queue PAY-EXT, on workdays within two hours.
`,
}

var desktopPersonal = map[string]string{
	"user_habits.md": `---
name: 工作习惯
description: 喜欢先看测试再看实现
type: user
---
先看测试，再看实现。
`,
}
