package recall

import (
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/memsvc/memsvc/internal/lexical"
)

// thesaurus lists words and phrases of software work that mean the same, in English and
// Chinese, a concept a line: so that a question in one language, or in other words, finds
// a memory in the other. English is matched by stems and whole words, Chinese anywhere.
const thesaurus = `
test: test, tests, testing, spec, specs, 测试, 用例
unittest: unit test, unit tests, 单元测试, 单测
integrationtest: integration test, integration tests, e2e, end to end, 集成测试, 端到端
mock: mock, mocks, stub, stubs, fake, fakes, 模拟, 打桩
deploy: deploy, deployment, rollout, ship, shipping, go live, 部署, 上线, 发布上线
release: release, releases, publish, version bump, 发布, 发版, 版本
rollback: rollback, roll back, revert, 回滚, 回退
database: database, databases, db, postgres, postgresql, mysql, sqlite, sql, 数据库, 库表
migration: migration, migrations, migrate, schema change, 迁移, 数据迁移, 表结构
backup: backup, backups, back up, restore, snapshot, 备份, 恢复, 快照
cache: cache, caches, caching, redis, memcached, 缓存
queue: queue, queues, kafka, rabbitmq, message broker, 队列, 消息队列
auth: auth, authentication, login, log in, sign in, sso, oauth, 登录, 认证, 鉴权, 单点登录
permission: permission, permissions, authorization, access control, rbac, role, roles, 权限, 授权, 角色
secret: secret, secrets, credential, credentials, password, passwords, token, tokens, api key, vault, 密钥, 密码, 凭证, 令牌
log: log, logs, logging, logger, 日志, 打印日志
metric: metric, metrics, monitoring, dashboard, dashboards, grafana, prometheus, 监控, 指标, 看板, 面板
alert: alert, alerts, alerting, pager, pagerduty, on-call, oncall, 告警, 报警, 值班
incident: incident, incidents, outage, postmortem, post-mortem, downtime, 事故, 故障, 复盘, 宕机
bug: bug, bugs, defect, issue, issues, ticket, tickets, jira, linear, 缺陷, 漏洞, 工单, 问题单
error: error, errors, exception, exceptions, panic, crash, 错误, 异常, 报错, 崩溃
performance: performance, slow, latency, speed, fast, optimize, optimization, 性能, 延迟, 慢, 优化
memoryuse: memory leak, memory usage, oom, heap, 内存, 内存泄漏
review: review, reviews, code review, reviewer, pull request, pr, merge request, 评审, 代码审查, 合并请求
commit: commit, commits, commit message, 提交, 提交说明, 提交信息
branch: branch, branches, branching, trunk, 分支
merge: merge, merging, rebase, 合并, 变基
git: git, github, gitlab, repository, repo, 仓库, 代码库
ci: ci, pipeline, pipelines, continuous integration, github actions, jenkins, workflow, 流水线, 持续集成, 构建流水线
build: build, builds, compile, compilation, bazel, make, 构建, 编译, 打包
lint: lint, linter, linting, formatter, formatting, style, code style, prettier, eslint, 格式化, 代码风格, 代码规范
docs: docs, documentation, readme, wiki, confluence, notion, 文档, 说明文档, 手册
comment: comment, comments, docstring, docstrings, 注释
api: api, apis, endpoint, endpoints, rest, grpc, graphql, 接口, 端点
frontend: frontend, front-end, ui, react, vue, css, page, 前端, 界面, 页面, 组件
backend: backend, back-end, server, service, services, 后端, 服务端, 服务
mobile: mobile, ios, android, app store, 移动端, 手机, 客户端应用
docker: docker, container, containers, image, dockerfile, 容器, 镜像
kubernetes: kubernetes, k8s, helm, pod, pods, cluster, 集群, 编排
cloud: cloud, aws, gcp, azure, terraform, infrastructure, infra, 云, 基础设施
staging: staging, preprod, pre-production, sandbox environment, 预发, 测试环境, 预生产
production: production, prod, live system, 生产, 线上, 生产环境
config: config, configuration, settings, setting, environment variable, env var, 配置, 设置, 环境变量
dependency: dependency, dependencies, package, packages, library, libraries, upgrade, 依赖, 依赖包, 第三方库, 升级
security: security, vulnerability, cve, xss, injection, 安全, 安全漏洞
privacy: privacy, gdpr, personal data, pii, compliance, 隐私, 合规, 个人信息
payment: payment, payments, billing, invoice, invoices, stripe, checkout, 支付, 付款, 账单, 发票, 结算
refund: refund, refunds, chargeback, 退款
order: order, orders, purchase, 订单, 下单
customer: customer, customers, client contact, user support, 客户, 用户支持
email: email, emails, mail, smtp, newsletter, 邮件, 邮箱
search: search, searching, elasticsearch, full text, 搜索, 检索
data: data pipeline, etl, warehouse, analytics, bigquery, 数据仓库, 数据分析, 数据管道
report: report, reports, reporting, 报表, 报告
deadline: deadline, deadlines, due date, schedule, milestone, 截止, 截止日期, 期限, 里程碑, 排期
freeze: freeze, code freeze, release freeze, 冻结, 封版, 封板
meeting: meeting, meetings, standup, stand-up, sync meeting, retro, 会议, 站会, 例会
decision: decision, decisions, decided, adr, chose, 决定, 决策, 选型
team: team, teams, owner, ownership, who owns, responsible, 团队, 负责人, 谁负责
contact: contact, contacts, slack channel, channel, reach out, 联系, 联系人, 频道, 群
refactor: refactor, refactoring, cleanup, clean up, rewrite, 重构, 清理, 重写
naming: naming, name convention, naming convention, 命名, 命名规范
typing: types, typing, type hints, typescript, 类型, 类型标注
concurrency: concurrency, race, deadlock, lock, thread, goroutine, async, 并发, 竞态, 死锁, 锁, 线程, 异步
retry: retry, retries, backoff, timeout, timeouts, 重试, 退避, 超时
idempotent: idempotent, idempotency, duplicate request, 幂等
transaction: transaction, transactions, commit rollback, 事务
pagination: pagination, paging, page size, 分页
upload: upload, uploads, file storage, s3, bucket, 上传, 文件存储, 对象存储
download: download, downloads, export, exports, 下载, 导出
import: import, imports, ingest, ingestion, 导入, 接入
timezone: timezone, time zone, utc, date format, daylight, 时区, 日期格式
currency: currency, money, rounding, decimal, cents, 货币, 金额, 舍入, 小数
language: translation, i18n, localization, locale, 翻译, 国际化, 本地化
feature: feature flag, feature flags, toggle, launchdarkly, 功能开关, 特性开关
experiment: experiment, experiments, ab test, a/b test, 实验, 灰度
ratelimit: rate limit, rate limiting, throttle, throttling, quota, 限流, 限速, 配额
webhook: webhook, webhooks, callback, callbacks, 回调
cron: cron, scheduler, scheduled job, batch job, nightly job, 定时任务, 批处理
network: network, dns, proxy, firewall, vpn, 网络, 代理, 防火墙
certificate: certificate, certificates, tls, ssl, https, 证书
design: design, figma, mockup, 设计稿, 设计
onboarding: onboarding, new hire, getting started, setup, set up, 入职, 上手, 环境搭建, 新人
answer: answer, answers, reply, explain, explanation, summary, summaries, verbose, concise, 回答, 回复, 解释, 总结, 简洁
style: tone, wording, writing style, 语气, 措辞, 文风
`

// conceptPrefix keeps a concept apart from any word that a person writes.
const conceptPrefix = "zqx"

// concepts is the thesaurus, taken apart once for many texts.
type concepts struct {
	names   []string
	english map[string][]phrase // by the first stem
	chinese []phrase
}

// phrase is an entry of the thesaurus.
type phrase struct {
	concept int
	stems   []string // of English
	text    string   // of Chinese
}

func newConcepts() *concepts {
	c := &concepts{english: make(map[string][]phrase)}
	for line := range strings.SplitSeq(strings.TrimSpace(thesaurus), "\n") {
		_, list, _ := strings.Cut(line, ": ")
		for word := range strings.SplitSeq(list, ", ") {
			p := phrase{concept: len(c.names), text: word}
			if word[0] >= utf8.RuneSelf {
				c.chinese = append(c.chinese, p)
				continue
			}
			if p.stems = stems(word); len(p.stems) > 0 {
				c.english[p.stems[0]] = append(c.english[p.stems[0]], p)
			}
		}
		c.names = append(c.names, conceptPrefix+strconv.Itoa(len(c.names))) // with a digit, so that no stemmer touches it
	}
	return c
}

// of returns the concepts of a text as words, each once, in the order of the thesaurus.
func (c *concepts) of(text string) []string {
	found := make([]bool, len(c.names))
	terms := stems(text)
	for i, t := range terms {
		for _, p := range c.english[t] {
			if i+len(p.stems) <= len(terms) && slices.Equal(terms[i:i+len(p.stems)], p.stems) {
				found[p.concept] = true
			}
		}
	}
	if strings.IndexFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 {
		lower := strings.ToLower(text)
		for _, p := range c.chinese {
			if strings.Contains(lower, p.text) {
				found[p.concept] = true
			}
		}
	}
	var out []string
	for i, ok := range found {
		if ok {
			out = append(out, c.names[i])
		}
	}
	return out
}

// stems returns the words of a text as the index knows them.
func stems(text string) []string {
	var out []string
	for t := range lexical.Tokens(text) {
		if !t.Single {
			out = append(out, t.Term)
		}
	}
	return out
}
