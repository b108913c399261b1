import { spawn } from "node:child_process"
import { randomBytes } from "node:crypto"

const argv = ["memsync-agent", "hook"]
const patience = 10000 // milliseconds; an answer after that is of no use

// fire asks memsync-agent about an event. Whatever goes wrong, the session goes on.
function fire(event, input) {
  return new Promise((resolve) => {
    let text = ""
    const done = () => {
      try {
        resolve(JSON.parse(text).hookSpecificOutput ?? {})
      } catch {
        resolve({})
      }
    }
    try {
      const child = spawn(argv[0], [...argv.slice(1), event], { stdio: ["pipe", "pipe", "ignore"], timeout: patience, windowsHide: true })
      child.stdout.on("data", (part) => (text += part))
      child.stdin.on("error", () => {})
      child.on("error", () => resolve({}))
      child.on("close", done)
      child.stdin.end(JSON.stringify({ hook_event_name: event, ...input }))
    } catch {
      resolve({})
    }
  })
}

export const Memsvc = async ({ directory }) => {
  const starts = new Map() // session -> what it begins with
  const start = (session, source = "startup") => {
    if (!starts.has(session)) starts.set(session, fire("SessionStart", { cwd: directory, session_id: session, source }))
    return starts.get(session)
  }
  const tool = (event, input, args) => fire(event, { cwd: directory, session_id: input.sessionID, tool_name: input.tool, tool_input: args })
  return {
    event: async ({ event }) => {
      // The index may have changed, and what was given before has left the context.
      if (event.type === "session.compacted") {
        starts.delete(event.properties.sessionID)
        await start(event.properties.sessionID, "compact")
      }
      if (event.type === "session.deleted") starts.delete(event.properties.info?.id)
    },
    "experimental.chat.system.transform": async (input, output) => {
      if (!input.sessionID) return
      const { additionalContext } = await start(input.sessionID)
      if (additionalContext) output.system.push(additionalContext)
    },
    "chat.message": async (input, output) => {
      const prompt = output.parts.filter((p) => p.type === "text" && !p.synthetic).map((p) => p.text).join("\n")
      const { additionalContext } = await fire("UserPromptSubmit", { cwd: directory, session_id: input.sessionID, prompt })
      if (!additionalContext) return
      output.parts.push({
        id: "prt_" + Date.now().toString(16).padStart(12, "0") + randomBytes(7).toString("hex"),
        sessionID: input.sessionID,
        messageID: output.message.id,
        type: "text",
        text: additionalContext,
        synthetic: true,
      })
    },
    "tool.execute.before": async (input, output) => {
      const { permissionDecision, permissionDecisionReason } = await tool("PreToolUse", input, output.args)
      if (permissionDecision === "deny") throw new Error(permissionDecisionReason)
    },
    "tool.execute.after": async (input, output) => {
      const { additionalContext } = await tool("PostToolUse", input, input.args ?? {})
      if (!additionalContext) return
      // A tool's own answer is a text; that of a tool server is a list.
      if (typeof output?.output === "string") output.output += "\n\n" + additionalContext
      else if (Array.isArray(output?.content)) output.content.push({ type: "text", text: additionalContext })
    },
  }
}
