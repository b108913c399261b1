package recall

// thesaurus lists words and phrases of software work that mean the same or nearly so, in
// English and Chinese, a concept a line: so that a question in one language, or in other
// words, finds a memory in the other. English is matched by stems and whole words,
// Chinese anywhere, the longest first. A word may stand in several lines.
const thesaurus = `
test, tests, testing, spec, specs, test case, test cases, 测试, 用例
unit test, unit tests, unittest, 单元测试, 单测
integration test, integration tests, e2e, end-to-end test, playwright, cypress, selenium, 集成测试, 端到端, 自动化测试
mock, mocks, mocking, stub, stubs, fake, fakes, dummy, 模拟, 打桩, 桩, 假数据
snapshot test, snapshot tests, golden file, golden files, 快照测试
flaky, intermittent, random failure, nondeterministic, 偶发, 不稳定
coverage, test coverage, 覆盖率
fuzz, fuzzing, property test, property-based, 模糊测试
fixture, fixtures, seed, seeds, seed data, sample data, test data, demo data, 测试数据, 种子数据, 样例数据
load test, load tests, stress test, benchmark, benchmarks, throughput, requests per second, rps, qps, k6, jmeter, 压测, 压力测试, 吞吐, 基准测试
deploy, deploys, deployment, rollout, roll out, ship, ships, go live, goes live, push to production, 部署, 上线
release, releases, publish, launch, 发布, 发版
version, versions, 版本
rollback, roll back, revert, undo, go back, previous version, earlier version, 回滚, 回退, 退回, 撤回, 上一个版本
canary, gradual rollout, traffic split, 灰度, 金丝雀, 放量
database, databases, db, postgres, postgresql, mysql, mariadb, oracle, 数据库, 库表
sql, query, queries, select statement, orm, gorm, hibernate, mybatis, 查询
migration, migrations, schema change, schema changes, alter table, drop column, add column, ddl, 表结构, 加字段, 删字段, 改表
migrate, migrates, move over, moves to, switch to, switches to, replace, replaces, retire, sunset, deprecate, deprecated, legacy, 迁移, 替换, 下线, 停用, 换成, 搬迁
column, columns, field, fields, 字段, 列名
table, tables, 数据表, 表结构
index, indexes, explain plan, query plan, full scan, table scan, 索引, 执行计划, 全表扫描
shard, sharding, shards, partition, partitions, partitioning, split table, 分库, 分表, 分片, 拆库, 分区
replica, replicas, replication, read replica, stale, lag, 从库, 副本, 主从, 只读库
connection pool, pooling, connection pooling, pgbouncer, pooler, 连接池
backup, backups, restore, 备份, 恢复
cache, caches, caching, cached, redis, memcached, ttl, 缓存, 过期时间
expire, expires, expired, expiry, expiration, ttl, lifetime, lifetimes, 过期, 失效, 有效期
queue, queues, kafka, rabbitmq, rocketmq, message broker, consumer, consumers, topic, topics, 队列, 消息队列, 消费, 消费者
dead letter, dead letters, dlq, 死信
duplicate, duplicates, twice, dedup, deduplicate, at least once, 重复, 去重
login, logins, log in, logs in, sign in, signs in, sign on, authentication, auth, authenticate, logged out, 登录, 认证, 鉴权, 登陆
sso, single sign-on, saml, oidc, oauth, keycloak, okta, ldap, identity provider, 单点登录, 统一登录, 账号体系
session, sessions, access token, access tokens, refresh token, refresh tokens, jwt, 会话, 登录态
mfa, 2fa, totp, second factor, two factor, two-factor, multi-factor, hardware key, 双因素, 双因子, 二次验证, 多因素
account, accounts, 账号, 账户, 帐号
permission, permissions, authorization, access control, rbac, role, roles, 权限, 授权, 角色
secret, secrets, credential, credentials, password, passwords, api key, api keys, vault, 密钥, 密码, 凭证, 凭据, 口令
log, logs, logging, logger, slog, log4j, logback, 日志
trace, traces, tracing, opentelemetry, jaeger, span, spans, 链路追踪, 链路, 调用链
metric, metrics, prometheus, counter, histogram, label cardinality, 指标, 埋点指标
monitoring, monitor, dashboard, dashboards, grafana, observability, 监控, 大盘, 看板, 面板
alert, alerts, alerting, alarm, alarms, 告警, 报警
on-call, oncall, on call, on duty, pager, pagerduty, rota, rotation, 值班, 轮值
incident, incidents, outage, outages, postmortem, post-mortem, downtime, 事故, 故障, 复盘, 宕机, 不可用
bug, bugs, defect, defects, 缺陷
ticket, tickets, jira, linear, backlog, 工单, 需求单
error, errors, err, exception, exceptions, error handling, 错误, 异常, 错误处理
crash, crashes, crashed, panic, sentry, error report, 崩溃, 报错, 闪退
performance, slow, slower, latency, speed, bottleneck, 性能, 延迟, 慢, 卡顿
memory leak, leak, leaks, ram, oom, out of memory, heap, memory usage, 内存泄漏, 内存
review, reviews, reviewer, code review, 评审, 代码审查, 代码评审
pull request, pull requests, pr, prs, merge request, merge requests, mr, 合并请求
commit, commits, committing, 提交
commit message, commit messages, 提交说明, 提交信息
branch, branches, branching, 分支
merge, merged, merges, rebase, rebasing, squash, 合并, 变基, 合代码, 合到
trunk, main branch, master, mainline, 主干
force push, force-push, push force, rewrite history, 强推, 强制推送
diff, diffs, patch, small change, small changes, 改动, 变更
split, split up, smaller, pieces, 拆分, 拆开, 拆成
repository, repo, repos, monorepo, gitlab, github, 仓库, 代码库
ci, pipeline, pipelines, continuous integration, github actions, jenkins, runner, runners, 流水线, 持续集成
build, builds, building, compile, compiles, compilation, bazel, maven, gradle, 构建, 编译, 打包
lint, linter, linters, linting, eslint, golangci-lint, static analysis, 静态检查, 代码检查
format, formatter, formatting, prettier, gofmt, 格式化
code style, conventions, coding standards, style guide, 代码风格, 代码规范, 编码规范
docs, documentation, readme, wiki, confluence, notion, handbook, 文档, 手册, 知识库
comment, comments, docstring, docstrings, 注释
api, apis, endpoint, endpoints, rest, http api, handler, 接口, 端点
openapi, swagger, api docs, api description, yapi, 接口文档
graphql, 图查询
grpc, rpc, protobuf, proto, 远程调用
generated code, code generation, codegen, generated, generate, stubs, 代码生成, 生成的代码, 自动生成
breaking change, breaking, backwards compatible, backward compatible, compatibility, compatible, 兼容, 不兼容
rename, renaming, renamed, 改名, 重命名
gateway, api gateway, ingress, load balancer, 网关, 负载均衡
frontend, front-end, front end, web ui, 前端
backend, back-end, back end, server side, 后端, 服务端
component, components, widget, button, buttons, form, forms, modal, dropdown, dialog, 组件, 按钮, 表单, 弹窗, 控件
component library, design system, ui kit, bootstrap, storybook, antd, 组件库, 设计系统
css, stylesheet, styling, colour, color, colors, colours, hex, spacing, background, theme, design token, design tokens, 样式, 颜色, 主题, 配色
pixel, pixels, px, rem, rpx, 像素
react, hook, hooks, useeffect, usestate, jsx, tsx
vue, composition api, options api, composables
accessibility, a11y, screen reader, screen readers, keyboard, mouse, aria, 无障碍, 键盘, 读屏
bundle, bundle size, page weight, javascript size, webpack, vite, 包体积, 打包体积
page, pages, homepage, 页面, 首页
mobile, ios, iphone, ipad, app store, testflight, 苹果, 应用商店
android, apk, google play, minsdk, 安卓
mobile app, native app, mini program, mini programs, 移动端, 手机端, 小程序
tester, testers, beta, beta testers, qa, 内测, 测试人员
offline, no network, without network, connectivity, 离线, 断网, 弱网
push notification, push notifications, fcm, apns, 推送
docker, dockerfile, container, containers, container image, images, image, distroless, 容器, 镜像
kubernetes, k8s, helm, pod, pods, cluster, clusters, node pool, 集群, 容器化
chart, charts, helm chart, helm values, values.yaml
cloud, aws, gcp, azure, 云上, 云服务
terraform, infrastructure as code, iac, pulumi, infrastructure, infra, 基础设施
cost, costs, spend, bill, budget, 成本, 费用, 账单, 预算
virtual machine, virtual machines, vm, vms, bare metal, 虚拟机, 物理机
ssh, bastion, jump host, log into server, remote shell, 堡垒机, 跳板机, 登录服务器, 生产机器
staging, preprod, pre-production, test environment, 预发, 测试环境, 预生产
preview environment, preview environments, review app, 预览环境
production, prod, live system, 生产, 线上, 生产环境
config, configuration, settings, nacos, apollo, environment variable, environment variables, env var, 配置, 设置, 环境变量, 配置中心
dependency, dependencies, library, libraries, package, packages, third-party, npm install, pip install, go get, 依赖, 依赖包, 第三方库, 类库
upgrade, upgrades, upgrading, update, bump, 升级
security, vulnerability, vulnerabilities, cve, xss, injection, 安全, 漏洞
audit, audits, auditors, compliance, soc2, iso27001, 审计, 合规, 测评, 等保
privacy, gdpr, personal data, pii, 隐私, 个人信息
erase, erasure, delete data, data deletion, right to be forgotten, delete customer data, delete account, 注销, 清除, 销户, 删除数据
mask, masking, redact, redaction, anonymise, anonymize, sensitive data, payload, request body, 脱敏, 打码, 手机号, 身份证
data residency, cross-border, overseas, abroad, 出境, 海外, 境外, 跨境
delete, deletes, remove, removes, drop, clean up, cleanup, unused, 删除, 删掉, 清理
payment, payments, pay, paying, checkout, stripe, wallet, wallets, apple pay, 支付, 付款, 收银台
money, amount, amounts, price, prices, currency, cents, decimal, float, floats, floating point, rounding, 金额, 价格, 货币, 浮点, 浮点数, 小数
price plan, price plans, pricing, price increase, subscription, subscriptions, tier, 涨价, 定价, 会员, 月费, 订阅
invoice, invoices, credit note, 发票, 开票
refund, refunds, money back, chargeback, 退款, 退钱
reconciliation, reconcile, bank statement, statements, 对账, 流水, 账不平
order, orders, purchase, 订单, 下单
customer, customers, client company, 客户
support, helpdesk, customer support, customer service, 客服, 工单, 支持
loyalty, points, 积分
email, emails, mail, mails, smtp, newsletter, mailing, 邮件, 邮箱
sms, text message, 短信
search, searching, elasticsearch, full text, reindex, reindexing, catalogue, 搜索, 检索
recommendation, recommendations, recommender, ranking model, 推荐
machine learning, ml, training, gpu, gpus, deep learning, cuda, 机器学习, 训练, 显卡
evaluation, eval, evals, gold set, graded, 评测, 评估
notebook, notebooks, jupyter, 笔记本
pandas, polars, dataframe, dataframes, 数据帧
etl, data job, data jobs, data pipeline, airflow, dag, dags, spark, 数据管道, 数据任务
warehouse, data warehouse, bigquery, snowflake, data mart, mart, 数仓, 数据仓库, 分层
analytics, report, reports, reporting, 报表, 数据分析, 报告
backfill, backfills, recompute, 回填, 补数
event tracking, tracking events, analytics events, schema registry, avro, 埋点
deadline, due date, milestone, schedule, 截止, 期限, 里程碑, 排期
code freeze, freeze, freezes, no merges, 冻结, 封版, 封板
big sale, black friday, sale weekend, peak season, 大促, 双十一, 双11, 六一八
weekend, friday, fridays, release window, maintenance window, 周五, 周末, 发布窗口, 变更窗口
meeting, meetings, standup, 会议, 站会, 例会
decision, decisions, adr, architecture decision, 决定, 决策, 选型
microservice, microservices, monolith, service split, 微服务, 单体, 拆服务
owner, owners, ownership, codeowners, responsible, who owns, 负责人, 谁负责, 归属
slack, slack channel, channel, reach out, 频道, 群里, 飞书, 钉钉
refactor, refactoring, rewrite, 重构, 重写
name, names, naming, naming convention, 命名, 起名
concurrent, concurrency, race condition, lost update, overwrite, optimistic lock, optimistic locking, 并发, 乐观锁, 覆盖, 竞态
retry, retries, retrying, try again, backoff, 重试, 退避
timeout, timeouts, timed out, hang, hangs, hanging, stuck, never returns, deadline exceeded, 超时, 卡住
idempotent, idempotency, idempotency key, double charge, duplicate request, 幂等, 重复提交
transaction, transactions, 事务
pagination, paging, page size, cursor, offset, limit and offset, 分页, 每页
null, nil, empty list, empty array, none, 空指针, 空数组, 空集合, 返回空
enum, enums, enumeration, 枚举
constant, constants, magic number, magic numbers, 常量, 魔法数, 魔法数字
parser, parsers, parse, parsing, 解析
upload, uploads, uploading, file upload, s3, bucket, presigned, object storage, 上传, 对象存储, 文件存储
download, downloads, export, exports, 下载, 导出
picture, pictures, photo, photos, resize, thumbnail, imgproxy, 图片, 缩略图
cdn, fastly, cloudflare, purge, 内容分发
timezone, time zone, utc, daylight saving, summer time, dst, local time, 时区, 夏令时
date, dates, date format, date library, moment, dayjs, 日期
translation, translations, i18n, localization, localisation, locale, localized, 翻译, 国际化, 本地化, 多语言, 文案
feature flag, feature flags, toggle, toggles, unleash, launchdarkly, unfinished, half-finished, work in progress, incomplete, 功能开关, 特性开关, 未完成
experiment, experiments, a/b test, ab test, 实验
rate limit, rate limits, rate limiting, throttle, throttling, quota, 429, too many requests, 限流, 限速, 配额, 频率限制
webhook, webhooks, callback, callbacks, 回调
cron, scheduler, scheduled job, scheduled jobs, batch job, nightly job, 定时任务, 批处理, 凌晨
dns, domain name, zone, 域名, 解析记录
network, proxy, vpn, firewall, 网络, 代理, 防火墙, 专线
certificate, certificates, tls, ssl, https, 证书
data centre, data center, datacenter, colo, 机房
mockup, mockups, wireframe, wireframes, figma, sketch, design file, design files, 设计稿, 设计图, 原型, 定稿
requirement, requirements, prd, product spec, roadmap, 需求, 需求文档, 路线图
getting started, local setup, set up, onboarding, new machine, new laptop, new computer, run it locally, run locally, 上手, 环境搭建, 新人, 新电脑, 本地环境, 本地运行
summary, summarize, summarise, recap, 总结, 概括, 回顾
short answer, short answers, brief, concise, terse, verbose, explain, explanation, 简短, 简洁, 结论, 解释
plan first, design first, 先写方案, 方案
firmware, ota, embedded, 固件
serial, serial console, uart, baud, 串口
arm, arm64, amd64, apple silicon, m-series, m1, m2, cpu architecture, architecture mismatch, 架构不匹配
shell, bash, zsh, fish, terminal, 命令行, 终端
editor, vim, neovim, vscode, ide, 编辑器
live streaming, streaming, webrtc, 直播
outsourcing, outsourced, contractor, contractors, handover, 外包, 交接
approve, approval, approvals, approves, sign off, sign-off, 批准, 审批, 同意, 复核
`
