package dream

import "testing"

func TestCompare(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want likeness
	}{
		{"Always run `make lint` before you push, because CI is slow.", "Always run `make lint` before you push, since CI is slow.", reworded},
		{"The VPN asks for a code every twelve hours.", "The VPN asks for a code every 12 hours.", reworded},
		{"Run gofmt before every commit.", "Please run gofmt before each commit", reworded},
		{"提交代码之前一定要先运行 make lint。", "提交代码之前必须要先运行 make lint。", reworded},
		{"测试数据库每天凌晨三点会被清空重置。", "测试数据库每天凌晨三点都会被清空重置", reworded},
		{"Deploy to staging on Tuesday after the standup.", "Deploy to production on Tuesday after the standup.", contrary},
		{"The tunnel listens on port 5432.", "The tunnel listens on port 5433.", contrary},
		{"In unit tests always mock the clock.", "In unit tests never mock the clock.", contrary},
		{"Mock the clock in unit tests.", "Do not mock the clock in unit tests.", contrary},
		{"Use tabs in Makefiles.", "Use tabs only in Makefiles.", contrary},
		{"网关的维护窗口是每周二晚上十点。", "网关的维护窗口是每周四晚上十点。", contrary},
		{"测试环境的密钥由张工保管。", "生产环境的密钥由张工保管。", contrary},
		{"Copy the dump from staging to production.", "Copy the dump from production to staging.", contrary},
		{"Tag the release before the merge to main.", "Tag the release after the merge to main.", contrary},
		{"上线之前要通知测试组。", "上线之后要通知测试组。", contrary},
		{"密钥轮换由我负责。", "密钥轮换由你负责。", contrary},
		{"上线之前要通知测试组。", "上线之前不要通知测试组。", contrary},
		{"Staging is reset every night.", "Staging is reset every night, and mail stays inside.", narrower},
		{"Staging is reset every night; reports are not.", "Staging is reset every night.", contrary}, // for all that a program can tell
		{"Staging is reset every night because it is cheap.", "Staging is reset every night.", wider},
		{"Ask the data team before you drop a column.", "Please always ask the data team before you drop a column.", reworded},
		{"Retries are capped at five, then it is dropped.", "Retries are capped at five; then it is dropped and counted.", narrower},
		{"Deploys to production need two approvals.", "Deploys to production need two approvals on Fridays.", unlike}, // one limits the other
		{"Pull requests need two approvals.", "Pull requests of the security team need two approvals.", contrary},
		{"告警发出十分钟没人响应再打电话。", "告警发出三十分钟没人响应再打电话。", contrary},
		{"Kept for twenty-five days in Frankfurt.", "Kept for 25 days in Frankfurt.", reworded},
		{"Pull requests that touch the caches are reviewed.", "A pull request that touches the cache is reviewed.", reworded},
		{"The importer is rewritten in spring.", "Errors are wrapped with the operation.", unlike},
		{"支付接口有重试。", "前端用的是 React。", unlike},
	} {
		if got := compare(c.a, c.b); got != c.want {
			t.Errorf("compare(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
