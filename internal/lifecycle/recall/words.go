package recall

// chineseStops are words of Chinese that say nothing about what a text is about; they
// also end the words beside them.
const chineseStops = `
的 了 吗 呢 吧 啊 呀 是 在 把 被 和 与 或 就 都 也 还 又 很 太 更 不 没 有 会 要 可以 应该 需要 必须
我 你 他 她 它 我们 你们 他们 大家 自己 这 那 这个 那个 这些 那些 这里 那里 这段 这条 这样 那样 哪 哪里 哪个 哪些 哪儿 谁 什么 怎么 怎样 怎么样 怎么办 如何 为什么 为何 多少 几个 是否
有没有 能不能 要不要 可不可以 行不行 是不是 会不会 一下 一个 一些 一条 一次 一点 有点 帮我 帮忙 请 请问 麻烦 给我 给 让 从 到 跟 用 因为 所以 但是 如果 然后 之后 之前 以后 以前 时候 的时候
现在 今天 刚才 已经 直接 还是 或者 而且 并且 里面 什么时候 越来越 比较 特别 非常 可能 一直 没有 不能 不要 不会 不是 还能 还要 继续
今晚 今早 明天 昨天 昨晚 前天 后天 上午 下午 早上 晚上 中午 凌晨 本周 这周 下周 上周 周末 月底 月初 年底 今年 去年 明年 最近 目前 当前 正在 刚刚 马上 立刻 赶紧 突然 总是 老是 经常 有时 偶尔 每次 上次 下次 这次 那次 第一次
其实 到底 究竟 大概 大约 差不多 几乎 好像 似乎 应该是 一般 通常 原来 本来 竟然 居然 反正 不过 只是 只有 只能 除了 以及 由于 关于 对于 按照 根据 通过 为了 以便 否则 不然 万一 假如 要是 即使 虽然 尽管 无论 不管
想 想要 希望 打算 准备 觉得 感觉 认为 以为 看到 听说 发现 记得 忘了 知道怎么 不知道 不确定 不清楚 不太懂 没看懂 搞不懂 搞定 弄好 谢谢 您好 你好 拜托 辛苦 好吗 可以吗 行吗 对吗 对不对 行不行 好不好 能否 可否 是吗 对了 所有 全部 整个 部分 其他 另外 另一个 每个 某个 某些 任何 各种 各个 很多 许多 不少 几个 两个 三个
`

// chineseGeneric are words of Chinese that every prompt to a coding agent may hold.
const chineseGeneric = `
写 看 改 做 加 跑 查 看看 看一下 写一个 实现 修改 添加 新增 增加 新建 创建 修复 解决 处理 完成 检查 使用 支持 调用 解释 说明 介绍 告诉 知道 查看 打开 运行 执行 输出 返回 设置
开始 结束 停止 尝试 试试 试一下 找到 换成 变成 分析 优化 调整 保存 加载 读取 写入 获取 得到 拿到 传 传入 显示 展示 列出 对比 选择 判断 描述 注意 进行 需求是 出现 遇到 发生 导致 影响 涉及 负责 参考 推荐一下 怎么处理 怎么解决 怎么实现 怎么写 怎么用 怎么做 怎么弄 怎么改
大家 同事 公司 团队 别人 东西 地方 位置 方式 办法 步骤 流程 过程 阶段 时间 名字 类型 数字 列表 对象 字符串 个人 部门 新的 旧的 不同 相同 一样 简单 复杂 方便 麻烦 正常 奇怪 前面 后面 上面 下面 左边 右边 中间 旁边
用户 代码 函数 方法 程序 文件 文件夹 功能 问题 原因 东西 内容 方案 项目 系统 数据 变量 参数 区别 意思 例子 示例 结果 逻辑 情况 合适 正确 计划
`

// genericWords are stems of English that every prompt to a coding agent may hold, and
// names of languages: met in a memory, they say little.
const genericWords = `
add make create implement write fix change update use using show explain tell give get set put need want look check help try work run start stop call go going do done find see know think say
move take keep turn open close handle happen happens decide build add new old good bad best right wrong better nice big small large first last next previous current latest same different
function method class struct variable file folder directory code program script line block thing things stuff hand hold lie feel seem become bring leave lead live show sit stand read enter exit finish wait choose pick compare print draw play way part case example project system data value type number string list map array object key
question answer problem issue reason result difference mean meaning something anything everything nothing someone people user customer one two three half more less much many several bunch few lot lots every each own
today yesterday tomorrow night morning week day month year hour minute time ago since until during afternoon still already yet again soon ever never always sometimes maybe really actually
ready fine okay ok possible able sure possible please thanks hello hey hi idea kind sort without within between against through around per via still can't don't doesn't isn't i'm it's i've what's
somehow honestly anyway guys folks cool awesome weird strange odd annoying crazy ugly nasty quickly slowly lately recently suddenly apparently probably definitely basically obviously kindly asap urgent wonder wondering curious guess suppose hope wish love hate prefer care mind matter worry afraid sorry trouble confused forgot forgotten miss notice spot talk speak told said heard sound appear believe
place side front back top bottom left middle corner rest whole bit couple dozen hundred thousand million tonight noon evening everywhere nowhere anywhere somewhere instead together apart alone myself yourself colleague teammate friend guy person man team company business boss
nothing else plus minus mostly mainly exactly roughly simply currently finally eventually meanwhile instead rather quite pretty almost nearly hardly barely far near early late soon
return returns import const var let func def err nil null true false int string self this public private static void main
python go golang java javascript typescript rust ruby php node bash css html sql json yaml linux
`
