package sandbox

import (
	"context"
	"encoding/json"

	"github.com/memsvc/memsvc/internal/lifecycle/model"
)

// tool is one that a model may call. do answers with a text, and says which file it was
// about once that is known to be one.
type tool struct {
	model.Tool
	do func(ctx context.Context, input []byte) (answer, target string, err error)
}

// list returns what this run offers. There is nothing else that a model can do.
func (r *run) list() []tool {
	add := func(out []tool, name, description, properties, required string, do func(context.Context, []byte) (string, string, error)) []tool {
		schema := `{"type":"object","properties":{` + properties + `},"required":[` + required + `]}`
		return append(out, tool{model.Tool{Name: name, Description: description, Schema: json.RawMessage(schema)}, do})
	}
	const places = "Names begin with memory/ (personal), memory/team/, or project/; transcript is the conversation."
	const path = `"path":{"type":"string","description":"such as memory/team/project_freeze.md, project/docs, transcript"}`
	var out []tool
	out = add(out, "read", "Read lines of a file. "+places,
		path+`,"offset":{"type":"integer","description":"first line, from 1"},"limit":{"type":"integer","description":"how many lines"}`, `"path"`, r.read)
	out = add(out, "list", "List a directory of the project, or all memories with type and description. "+places, path, `"path"`, r.listDir)
	out = add(out, "glob", "Find files of the project by pattern, such as **/*.go.", `"pattern":{"type":"string"}`, `"pattern"`, r.glob)
	out = add(out, "grep", "Find lines by a regular expression (RE2) in memories, the project or the transcript. "+places,
		`"pattern":{"type":"string"},`+path, `"pattern","path"`, r.grep)
	if r.ReadOnly {
		return out
	}
	const memory = `"memory":{"type":"string","description":"file.md, or team/file.md"}`
	out = add(out, "write", "Write a new memory; its index line comes by itself.",
		`"type":{"type":"string","enum":["user","feedback","project","reference"]},"name":{"type":"string","description":"what it is about, in a few words"},`+
			`"description":{"type":"string","description":"one line by which it is found again"},"body":{"type":"string"},`+
			`"team":{"type":"boolean","description":"for the whole team instead of this person; never with type user"}`,
		`"type","name","description","body"`, r.write)
	out = add(out, "edit", "Change a memory: replace a part of it that occurs once, or, after reading it, its whole body. Its other fields stay.",
		memory+`,"old":{"type":"string"},"new":{"type":"string"},"body":{"type":"string","description":"the whole text below the frontmatter"}`, `"memory"`, r.edit)
	if r.AllowDelete {
		out = add(out, "delete", "Delete a memory that you have read.", memory, `"memory"`, r.remove)
	}
	return out
}
